/* cgroup.h - how much memory the kernel lets this process's control group have.
 *
 * Version 2 of the hierarchy only, which is what systemd and Kubernetes set up today. */
#ifndef WORKER_SUPERVISOR_CGROUP_H
#define WORKER_SUPERVISOR_CGROUP_H

#include "common/base/error.h"

#include <stdint.h>

/* The least memory.max of the group and of those around it, as far as they can be seen;
 * UINT64_MAX when none is set. root is "/sys/fs/cgroup", self is "/proc/self/cgroup".
 * -EINVAL when a limit cannot be understood. */
int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err);

#endif
