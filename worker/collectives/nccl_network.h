/* nccl_network.h - by which network interface NCCL reaches the other ranks. */
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

#endif
