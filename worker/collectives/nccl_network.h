/* nccl_network.h - sets the environment variables that NCCL reads when it is first called: the
 * network interface by which it reaches the other ranks, and the transports that it uses. Variables
 * that the user has set are left alone. */
#ifndef WORKER_COLLECTIVES_NCCL_NETWORK_H
#define WORKER_COLLECTIVES_NCCL_NETWORK_H

#include "common/base/error.h"

#include <stddef.h>

/* Find the name of the interface that has this address, given as a number or a host name. -ENOENT:
 * no interface has it; -EINVAL: it cannot be resolved; -ENAMETOOLONG: name is too small; other
 * -errno. */
int nccl_interface_find(const char *address, char *name, size_t size, struct error *err);
/* Make all communicators of this process use the interface with this address: sets
 * NCCL_SOCKET_IFNAME, unless the user has. If no interface has it, a warning is logged, and NCCL
 * chooses one. NULL: do nothing. */
void nccl_interface_use(const char *address);
/* Disable sums inside switches (NVLS), which add in an order that differs from call to call. And
 * make a communicator set up all its connections while it is joined, not at the first call of a
 * kind, when other ranks wait for this one and the device's memory is taken. */
void nccl_ways_use(void);

#endif
