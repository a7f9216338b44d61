/* cards.h - counts the network cards by which ranks on devices exchange data with other hosts.
 *
 * NCCL uses all cards that take data from a device's memory (RDMA: InfiniBand, RoCE, EFA). Without
 * any, ranks meet at the host's address (worker/collectives/nccl_network.h), and its card is the
 * only one, or several that are bonded.
 *
 * sysfs says it. hwloc shows cards too, but drops those beside cores that the process may not use,
 * and knows neither their ports, nor bonds, nor speeds. */
#ifndef WORKER_HARDWARE_CARDS_H
#define WORKER_HARDWARE_CARDS_H

#include "common/base/error.h"

#include <ifaddrs.h>

/* The number of physical links that are up, by `sys`, the root of sysfs: each port of each function
 * of a card is one, except those that are slow beside others. `addresses` are all of this host's
 * interfaces, `address` is where other hosts reach it. 0: unknown, as of an address that no
 * interface has, or that other hosts cannot reach. */
unsigned cards_count(const char *sys, const struct ifaddrs *addresses, const char *address);

/* The same for this machine, with its addresses. */
int cards_count_here(const char *address, unsigned *count, struct error *err);

#endif
