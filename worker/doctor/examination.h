/* examination.h - `gimbal-worker --doctor`: checks whether this machine is fit for the worker that
 * these settings describe.
 *
 * A check is a function of host.c, devices.c or cluster.c and a row of the table that runs them in
 * order: later checks see what earlier ones have found. The devices come early, because how much is
 * enough depends on what is offered. */
#ifndef WORKER_DOCTOR_EXAMINATION_H
#define WORKER_DOCTOR_EXAMINATION_H

#include "common/doctor/doctor.h"
#include "common/hardware/hardware.h"
#include "worker/node/settings.h"

#include <stdbool.h>
#include <stdio.h>

/* What checks look at. Pointers are lent, except for the report. */
struct examination {
    const struct worker_settings *settings;
    const char *shim, *executor;
    int stop_fd;
    const char *cgroups, *cgroup_self; /* CGROUPS, CGROUP_SELF */
    const char *proc, *dev;            /* "/proc", "/dev" */
    struct hardware_report *report;    /* what would be offered; NULL: nothing */
    /* A worker of this name is running here already, so resources that executors use may be its
     * own. */
    bool works;
};

/* Look at this machine; arguments are lent. */
struct examination examination_open(const struct worker_settings *settings, const char *shim,
                                    const char *executor, int stop_fd);
void examination_finish(struct examination *examination);
/* Whether its devices have memory of their own. */
bool examination_accelerates(const struct examination *examination);
/* Read a file below a folder as text, without its last newline and cut to `size`; false: it cannot
 * be read. */
bool examination_read(const char *folder, const char *name, char *out, size_t size);
/* Read a size in bytes from a line "NAME NUMBER kB" of proc/meminfo, where name is such as
 * "MemAvailable:"; false: there is no such line. */
bool examination_memory(const struct examination *examination, const char *name, uint64_t *bytes);

/* All checks, in order; ends with NULL. */
extern const struct doctor_check *const examination_checks[];

/* Run all checks, and print {"node", "report": OBJECT or null, "findings": [...]}. */
void examination_run(struct examination *examination, FILE *out);
/* Print the same if the settings themselves are wrong. */
void examination_refuse(const char *words, FILE *out);

extern const struct doctor_check check_system, check_state, check_devices, check_cores,
    check_memory, check_limits, check_threads, check_bf16, check_nvidia, check_certificates,
    check_address, check_coordinator;

#endif
