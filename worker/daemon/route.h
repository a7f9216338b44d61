/* route.h - the address under which other nodes reach this one. */
#ifndef WORKER_DAEMON_ROUTE_H
#define WORKER_DAEMON_ROUTE_H

#include "common/base/error.h"

#define ROUTE_ADDRESS_SIZE 64

/* The address that this host's packets to the coordinator (tcp://HOST:PORT or tls+tcp://HOST:PORT)
 * carry as their source: other nodes are on that network too, unless the setting host_address says
 * otherwise. -EINVAL for what is no address; -EHOSTUNREACH in words when no route leads there. */
int route_address(const char *coordinator, char out[ROUTE_ADDRESS_SIZE], struct error *err);

/* Can ranks listen there? -EINVAL in words for what is no IP address or not one of this host. */
int route_check(const char *host_address, struct error *err);

#endif
