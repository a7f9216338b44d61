/* local.h - this machine's devices as those of one node called "local", without a cluster: its
 * cores in so many pieces, or a device that so many ranks share. */
#ifndef COORDINATOR_CLI_LOCAL_LOCAL_H
#define COORDINATOR_CLI_LOCAL_LOCAL_H

#include "coordinator/planner/planner.h"

#include <sched.h>

/* As many ranks as one gimbal-executor takes. */
#define LOCAL_DEVICES_MAX 64

struct local {
    int count, cores;
    struct planner_device *devices; /* local/0, local/1, ... */
    struct profile *profiles;
    char *cpusets;      /* "0-1;2-3", one set per device */
    const char *device; /* that all of them compute on; NULL: the cores */
};

/* Cut the process's cores into count devices, and have an executor measure them, or `device`, lent,
 * for as many ranks. -errno. */
int local_open(int count, const char *device, struct local *local, struct error *err);
/* Accepts a zeroed one. */
void local_finish(struct local *local);

/* The cores of `allowed` in count runs of equal length (a longer one more core) as Linux writes
 * sets, separated by ';'; with fewer cores than devices each set is one core, in turn. The
 * text is the caller's. */
char *local_cpusets(const cpu_set_t *allowed, int count);

#endif
