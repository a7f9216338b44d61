/* link.h - emulates two hosts and the link between them on one machine: the network namespaces of
 * two processes, joined by a pair of virtual interfaces whose rate a token bucket filter limits. */
#ifndef BENCH_OVERLAP_LINK_H
#define BENCH_OVERLAP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Why no link can be made here; NULL: one can. It takes root, ip(8), tc(8) and namespaces. */
const char *link_missing(void);
/* Move the calling process, which will be a host, to a network namespace of its own. To be called
 * before it opens a socket. */
bool link_enter(void);
/* Connect the namespaces of two processes at a rate in each direction, as tc writes it: "1gbit". */
bool link_join(const pid_t hosts[2], const char *rate);
/* The IPv4 address of host 0 or 1. */
const char *link_address(int host);

#endif
