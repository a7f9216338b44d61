/* local.h - this machine's devices as those of one node called "local", without a cluster: its
 * cores in so many pieces, or a device that so many ranks share. */
#ifndef COORDINATOR_CLI_LOCAL_LOCAL_H
#define COORDINATOR_CLI_LOCAL_LOCAL_H

#include "coordinator/planner/planner.h"

#include <sched.h>

/* As many ranks as one gimbal-executor takes. */
#define LOCAL_DEVICES_MAX 64

/* The row of a table of flags that says of --local N: not as it was measured before. */
/* clang-format off */
#define LOCAL_MEASURE_FLAG(type, member)                                                        \
    {"measure", 0, FLAG_SWITCH, offsetof(type, member), NULL,                                   \
     "measure this machine again, even if a recent measurement is kept"}
/* clang-format on */

struct local {
    int count, cores;
    struct planner_device *devices; /* local/0, local/1, ... */
    struct profile *profiles;
    char *cpusets;      /* "0-1;2-3", one set per device */
    const char *device; /* that all of them compute on; NULL: the cores */
    uint64_t measured_unix_ms;
    bool kept;  /* it was measured at an earlier time */
    char *note; /* what is to be said of that; "": nothing */
};

/* Cut the process's cores into count devices, and have an executor measure them, or `device`, lent,
 * for as many ranks. What the cores were measured to do in the last days serves again, unless
 * `measure` is true. -errno. */
int local_open(int count, const char *device, bool measure, struct local *local, struct error *err);
/* A line each on stderr: which measurement is used, and what is to be said of it. */
void local_tell(const struct local *local);
/* Accepts a zeroed one. */
void local_finish(struct local *local);

/* The cores of `allowed` in count runs of equal length (a longer one more core) as Linux writes
 * sets, separated by ';'; with fewer cores than devices each set is one core, in turn. The
 * text is the caller's. */
char *local_cpusets(const cpu_set_t *allowed, int count);

/* The folder of what was measured, yours: GIMBAL_PROFILE_CACHE, else the user's for what can be
 * made again. NULL: there is none. */
char *local_cache_folder(void);
/* What the machine can still give, or what a container's limit leaves of it. */
uint64_t local_memory_bytes(void);

#endif
