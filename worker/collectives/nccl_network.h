/* nccl_network.h - what NCCL reads in the environment when it is first called: by which network
 * interface it reaches the other ranks, and which ways it takes. What the user has chosen there
 * stays. */
#ifndef WORKER_COLLECTIVES_NCCL_NETWORK_H
#define WORKER_COLLECTIVES_NCCL_NETWORK_H

#include "common/base/error.h"

#include <stddef.h>

/* The name of the interface that has this address, a number or a host's name. -ENOENT: none has;
 * -EINVAL: it cannot be resolved; -ENAMETOOLONG; -errno. */
int nccl_interface_find(const char *address, char *name, size_t size, struct error *err);
/* The interface of this address for all communicators of this process: in the environment, where
 * NCCL looks when it is first called, unless the user has chosen there (NCCL_SOCKET_IFNAME). An
 * address that no interface has is told, and left to NCCL. */
void nccl_interface_use(const char *address);
/* No sums inside of switches (NVLS): in which order these add differs from call to call. And all
 * that a communicator connects it connects while it is joined, not at the first call of a kind,
 * when others wait for this rank and the device's memory is taken. */
void nccl_ways_use(void);

#endif
