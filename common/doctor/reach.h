/* reach.h - tests if packets get to a port of another machine, and how long they take. */
#ifndef COMMON_DOCTOR_REACH_H
#define COMMON_DOCTOR_REACH_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct reach {
    bool listens;   /* the connection was accepted; false: the machine refused it */
    double seconds; /* until the answer: one round trip */
};

/* Make a TCP connection to HOST:PORT and close it again. host is a name or an address; an IPv6
 * address may have brackets. Returns 0 when the machine has answered, even if it refused.
 * -EHOSTUNREACH when there is no such name or no route; -ETIMEDOUT when nothing came back, as when
 * a firewall drops packets. */
int reach_port(const char *host, uint16_t port, int timeout_ms, struct reach *out,
               struct error *err);

#endif
