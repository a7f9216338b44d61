/* cgroup.h - how much memory the kernel lets this process's control group have, and how often it
 * has killed for want of it. */
#ifndef WORKER_HARDWARE_CGROUP_H
#define WORKER_HARDWARE_CGROUP_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Where the kernel has it. */
#define CGROUPS "/sys/fs/cgroup"
#define CGROUP_SELF "/proc/self/cgroup"
#define CGROUP_VMSTAT "/proc/vmstat"

/* The least memory.max (version 2) or memory.limit_in_bytes (version 1, which writes a number of
 * bytes beyond any machine's where none is set) of the group and of those around it, as far as they
 * can be seen; UINT64_MAX when there is none. root is CGROUPS, self is CGROUP_SELF.
 * -EINVAL when a limit cannot be understood. */
int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err);

/* How many processors' time the group may have, by the least cpu.max or cfs_quota of it and of
 * those around it: INFINITY when there is no such limit. -EINVAL as above. */
int cgroup_processors(const char *root, const char *self, double *processors, struct error *err);
/* How many processes and threads more the group may have, by pids.max; UINT64_MAX: no limit.
 * -EINVAL as above. */
int cgroup_threads(const char *root, const char *self, uint64_t *threads, struct error *err);

struct cgroup_kills {
    uint64_t count;
    const char *where; /* the file's name, the same pointer each time */
};

/* How many processes the kernel has killed for memory so far: its `oom_kill` of the group that a
 * process and its children are in, or the nearest around that can be seen, in memory.events
 * (version 2) or memory.oom_control (version 1); else of the whole machine, in vmstat. The kernel
 * counts a process in its own group whoever's limit it was, and before it is gone. False: it says
 * that nowhere, *out is untouched. */
bool cgroup_kills(const char *root, const char *self, const char *vmstat, struct cgroup_kills *out);

#endif
