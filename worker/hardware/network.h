/* network.h - the address at which other hosts reach this one, and by how many cards.
 *
 * The address is the source of this host's packets to the coordinator. Other nodes are assumed to
 * be on that network too, unless the setting host_address says otherwise.
 *
 * The cards are those by which ranks on devices exchange data with other hosts. NCCL uses all that
 * take data from a device's memory (RDMA: InfiniBand, RoCE, EFA). Without any, ranks meet at the
 * host's address (worker/collectives/nccl_network.h), and its card is the only one, or several that
 * are bonded. sysfs says it. hwloc shows cards too, but drops those beside cores that the process
 * may not use, and knows neither their ports, nor bonds, nor speeds. */
#ifndef WORKER_HARDWARE_NETWORK_H
#define WORKER_HARDWARE_NETWORK_H

#include "common/base/error.h"

#include <ifaddrs.h>

#define NETWORK_ADDRESS_SIZE 64

/* Find the source address of packets to the coordinator's host, which may be a name, or an IPv6
 * address in brackets. -EHOSTUNREACH: there is no such host, or no route leads there. */
int network_source(const char *host, unsigned port, char out[NETWORK_ADDRESS_SIZE],
                   struct error *err);

/* Whether ranks can listen at this address. -EINVAL: no IP address, or not one of this host. */
int network_listens(const char *host_address, struct error *err);

/* The number of physical links that are up, by `sys`, the root of sysfs: each port of each function
 * of a card is one, except those that are slow beside others. `addresses` are all of this host's
 * interfaces, `address` is where other hosts reach it. 0: unknown, as of an address that no
 * interface has, or that other hosts cannot reach. */
unsigned network_cards(const char *sys, const struct ifaddrs *addresses, const char *address);
/* The same for this machine, with its addresses. */
int network_cards_here(const char *address, unsigned *count, struct error *err);

#endif
