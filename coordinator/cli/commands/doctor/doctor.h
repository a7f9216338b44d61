/* doctor.h - what `gimbal doctor` examines: this machine, by means of its worker's own program; and
 * the cluster, as far as the caller may see it.
 *
 * A check is a row here, in the file of where it looks, and in the table of doctor.c. The worker's
 * checks are part of its program, which knows its settings; they come first, as a single row. */
#ifndef COORDINATOR_CLI_COMMANDS_DOCTOR_DOCTOR_H
#define COORDINATOR_CLI_COMMANDS_DOCTOR_DOCTOR_H

#include "common/doctor/doctor.h"
#include "common/hardware/hardware.h"
#include "coordinator/cli/client.h"

#include <stdbool.h>

/* What checks work on. */
struct visit {
    const struct invocation *invocation;
    const char *job_path;                /* NULL: none was named */
    bool pairs;                          /* links shall be examined */
    char *node;                          /* of the worker here; NULL: unknown */
    struct hardware_report *report;      /* what it would offer; NULL: nothing */
    const Gimbal__ListNodesReply *nodes; /* of the cluster; NULL: it could not be seen */
    json_t *links;                       /* of --pairs; NULL: none were examined */
};

extern const struct doctor_check doctor_worker, doctor_leftovers, doctor_job, doctor_cluster,
    doctor_checkpoints, doctor_neighbours, doctor_devices, doctor_links;

/* The node that the worker here is or was in the cluster; NULL: none. */
const Gimbal__NodeStatus *visit_own(const struct visit *visit);
/* Look at a folder that jobs are saved in: files can be made there, and there is room. `key` is
 * what named it. Returns whether it will do. */
bool visit_folder(const char *key, const char *folder, struct findings *out);
/* Whether it has work or may be given some. */
bool visit_is_alive(const Gimbal__NodeStatus *node);

#endif
