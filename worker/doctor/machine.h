/* machine.h - `gimbal-worker --doctor`: checks whether this machine is fit for the worker that
 * these settings describe.
 *
 * A check is a file in checks/ and a row of checks.c. Later checks see what earlier ones have
 * found. The devices come early, because how much is enough depends on what is offered. */
#ifndef WORKER_DOCTOR_MACHINE_H
#define WORKER_DOCTOR_MACHINE_H

#include "common/doctor/doctor.h"
#include "common/hardware/hardware.h"
#include "worker/daemon/settings.h"

#include <stdbool.h>
#include <stdio.h>

/* What checks look at. Pointers are lent, except for the report. */
struct machine {
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
struct machine machine_open(const struct worker_settings *settings, const char *shim,
                            const char *executor, int stop_fd);
void machine_finish(struct machine *machine);
/* Whether its devices have memory of their own. */
bool machine_accelerates(const struct machine *machine);
/* Read a file below a folder as text, without its last newline and cut to `size`; false: it cannot
 * be read. */
bool machine_read(const char *folder, const char *name, char *out, size_t size);
/* Read a size in bytes from a line "NAME NUMBER kB" of proc/meminfo, where name is such as
 * "MemAvailable:"; false: there is no such line. */
bool machine_memory(const struct machine *machine, const char *name, uint64_t *bytes);

/* All checks, in order; ends with NULL. */
extern const struct doctor_check *const machine_checks[];

/* Run all checks, and print {"node", "report": OBJECT or null, "findings": [...]}. */
void machine_examine(struct machine *machine, FILE *out);
/* Print the same if the settings themselves are wrong. */
void machine_refuse(const char *words, FILE *out);

extern const struct doctor_check check_system, check_state, check_devices, check_cores,
    check_memory, check_limits, check_threads, check_bf16, check_nvidia, check_certificates,
    check_address, check_coordinator;

#endif
