/* machine.h - this machine without a cluster, as devices of a node called "local": its cores in
 * several parts, or one device shared by several ranks; and where a training here saves. */
#ifndef COORDINATOR_CLI_MACHINE_H
#define COORDINATOR_CLI_MACHINE_H

#include <sched.h>
#include <stdbool.h>

#include "common/base/error.h"
#include "coordinator/planner/planner.h"

/* The most ranks that one gimbal-executor takes. */
#define MACHINE_DEVICES_MAX 64

/* Row of a table of flags, for use with --local N. */
/* clang-format off */
#define MACHINE_MEASURE_FLAG(type, member)                                                      \
    {"measure", 0, FLAG_SWITCH, offsetof(type, member), NULL,                                   \
     "measure this machine again, even if a recent measurement is kept"}
/* clang-format on */

struct machine {
    int count, cores;
    struct planner_device *devices; /* local/0, local/1, and so on */
    struct profile *profiles;
    char *cpusets;      /* one set per device, as in "0-1;2-3" */
    const char *device; /* the device they all compute on; NULL: the cores */
    uint64_t measured_unix_ms;
    bool kept;  /* an earlier measurement is used */
    char *note; /* a remark about that; "": none */
};

/* Divide the process's cores into `count` devices and have an executor measure them, or measure
 * `device` (lent) for as many ranks. A measurement of the last days is reused unless `measure` is
 * true. A negative errno. */
int machine_open(int count, const char *device, bool measure, struct machine *machine,
                 struct error *err);
/* Print to stderr which measurement is used, and the remark, one line each. */
void machine_tell(const struct machine *machine);
/* Accepts a zeroed struct. */
void machine_finish(struct machine *machine);

/* Divide the cores of `allowed` into `count` runs of nearly equal length, written as Linux core
 * lists separated by ';'. If there are fewer cores than devices, each set is one core, in turn. The
 * caller frees the text. */
char *machine_cpusets(const cpu_set_t *allowed, int count);

/* The directory of kept measurements, owned by the caller: GIMBAL_PROFILE_CACHE, else in the user's
 * cache directory. NULL: there is none. */
char *machine_cache_folder(void);
/* The memory that the machine, or a container's limit, leaves available. */
uint64_t machine_memory_bytes(void);

/* Where a training without a cluster saves that was told nothing else: a folder for each run. */
#define RUNS_FOLDER "./runs"

/* Make the folder of a training's checkpoints, and check that files can be made there: the job's in
 * `dir`; NULL: of a new run in RUNS_FOLDER. With `resume` it is one that is there: the newest run
 * (-ENOENT: there is none), or dir's, which is not made if it is missing, because dir may be
 * misspelt, and the executor says so. *out is its path, the caller's to free. A negative errno. */
int machine_prepare_saving(const char *dir, const char *job, bool resume, char **out,
                           struct error *err);
/* Remove the folder of a run that has saved nothing. */
void machine_forget_run(const char *root);

#endif
