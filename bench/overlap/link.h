/* link.h - two hosts and the link between them, as far as one machine can have them: network
 * namespaces of two processes, joined by a pair of interfaces that a token bucket slows down. */
#ifndef BENCH_OVERLAP_LINK_H
#define BENCH_OVERLAP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Why there can be no link here; NULL: there can. Needs root, ip(8) and tc(8). */
const char *link_missing(void);
/* In the process of a host, before it opens a socket: into a namespace of its own. */
bool link_enter(void);
/* Join the namespaces of two processes at so many bits per second, each way: "1gbit". */
bool link_join(const pid_t hosts[2], const char *rate);
/* The address of host 0 or 1. */
const char *link_address(int host);

#endif
