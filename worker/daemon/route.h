/* route.h - the address at which other nodes reach this one. */
#ifndef WORKER_DAEMON_ROUTE_H
#define WORKER_DAEMON_ROUTE_H

#include "common/base/error.h"

#define ROUTE_ADDRESS_SIZE 64

/* Find the source address of this host's packets to the coordinator (tcp://HOST:PORT or
 * tls+tcp://HOST:PORT). Other nodes are assumed to be on that network too, unless the setting
 * host_address says otherwise. -EINVAL: no valid address; -EHOSTUNREACH: no route leads there. */
int route_address(const char *coordinator, char out[ROUTE_ADDRESS_SIZE], struct error *err);

/* Whether ranks can listen at this address. -EINVAL: no IP address, or not one of this host. */
int route_check(const char *host_address, struct error *err);

#endif
