/* reach.h - whether packets come to a port of another machine, and how long they take. */
#ifndef COMMON_RPC_REACH_H
#define COMMON_RPC_REACH_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct reach {
    bool listens;   /* somebody took the connection; else its machine said that nobody does */
    double seconds; /* until it said so: once there and back */
};

/* Have a TCP connection made to HOST:PORT and closed again. host is a name or an address, one of
 * IPv6 with or without brackets. 0: its machine has answered, whatever it said. -EHOSTUNREACH where
 * there is no such name or no way; -ETIMEDOUT where nothing came back, as of what a firewall drops.
 */
int reach_port(const char *host, uint16_t port, int timeout_ms, struct reach *out,
               struct error *err);

#endif
