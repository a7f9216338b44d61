/* cgroup.h - limits of this process's control group on memory, processor time and threads, and how
 * often the kernel has killed for memory. */
#ifndef WORKER_HARDWARE_CGROUP_H
#define WORKER_HARDWARE_CGROUP_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Where these are mounted. */
#define CGROUPS "/sys/fs/cgroup"
#define CGROUP_SELF "/proc/self/cgroup"
#define CGROUP_VMSTAT "/proc/vmstat"

/* The lowest memory limit of the group and its ancestors, as far as they are visible: memory.max in
 * cgroup v2, memory.limit_in_bytes in v1, where a number beyond any machine's memory means none.
 * UINT64_MAX if there is no limit. root is CGROUPS, self is CGROUP_SELF, except in tests. -EINVAL:
 * a limit cannot be parsed. */
int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err);

/* How many processors' time the group may use, by the lowest cpu.max or cfs_quota of it and its
 * ancestors; INFINITY: no limit. -EINVAL as above. */
int cgroup_processors(const char *root, const char *self, double *processors, struct error *err);
/* How many more processes and threads the group may have, by pids.max; UINT64_MAX: no limit.
 * -EINVAL as above. */
int cgroup_threads(const char *root, const char *self, uint64_t *threads, struct error *err);

struct cgroup_kills {
    uint64_t count;
    const char *where; /* name of the file; always the same pointer for the same file */
};

/* How many processes the kernel has killed for memory so far. This is `oom_kill` of the group of
 * this process and its children, or of the nearest visible ancestor, in memory.events (v2) or
 * memory.oom_control (v1); otherwise of the whole machine, in vmstat. The kernel counts a process
 * in its own group, whichever group's limit it was, and before the process is gone. False: there is
 * no such count, *out is untouched. */
bool cgroup_kills(const char *root, const char *self, const char *vmstat, struct cgroup_kills *out);

#endif
