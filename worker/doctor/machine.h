/* machine.h - `gimbal-worker --doctor`: whether this machine is fit for the worker that these
 * settings describe.
 *
 * A check is a file of checks/ and a row of checks.c. Rows see what those before them have found;
 * the report comes first, for how much is enough depends on what is offered. */
#ifndef WORKER_DOCTOR_MACHINE_H
#define WORKER_DOCTOR_MACHINE_H

#include "common/doctor/doctor.h"
#include "common/hardware/hardware.h"
#include "worker/daemon/settings.h"

#include <stdbool.h>
#include <stdio.h>

/* The scene of the checks. */
struct machine {
    const struct worker_settings *settings;
    const char *shim, *executor;
    int stop_fd;
    const char *cgroups, *cgroup_self; /* CGROUPS, CGROUP_SELF */
    const char *proc, *dev;            /* "/proc", "/dev" */
    struct hardware_report *report;    /* what would be offered; NULL: nothing could be */
    bool works; /* a worker of this name does already: what executors take here may be its own */
};

/* Of this machine. */
struct machine machine_open(const struct worker_settings *settings, const char *shim,
                            const char *executor, int stop_fd);
void machine_finish(struct machine *machine);
/* Its devices have memory of their own. */
bool machine_accelerates(const struct machine *machine);
/* The file below folder, as text without its last newline, cut to size; false: it cannot be read.
 */
bool machine_read(const char *folder, const char *name, char *out, size_t size);
/* The number behind "MemAvailable:" in bytes, of lines "NAME NUMBER kB" in proc/meminfo; false:
 * it says no such thing. */
bool machine_memory(const struct machine *machine, const char *name, uint64_t *bytes);

/* All checks in order, ended by NULL. */
extern const struct doctor_check *const machine_checks[];

/* Run them and print {"node", "report": OBJECT or null, "findings": [...]}. */
void machine_examine(struct machine *machine, FILE *out);
/* The same where the settings themselves are wrong. */
void machine_refuse(const char *words, FILE *out);

extern const struct doctor_check check_system, check_state, check_devices, check_cores,
    check_memory, check_limits, check_threads, check_bf16, check_nvidia, check_certificates,
    check_address, check_coordinator;

#endif
