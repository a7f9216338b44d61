/* visit.h - what `gimbal doctor` examines: this machine, by means of its worker's own program; and
 * the cluster, as far as the caller may see it.
 *
 * A check is a file in checks/ and a row in the table of visit.c. The worker's checks are part of
 * its program, which knows its settings; they come first, as a single row here. */
#ifndef COORDINATOR_CLI_DOCTOR_VISIT_H
#define COORDINATOR_CLI_DOCTOR_VISIT_H

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

/* All checks in order; ends with NULL. */
extern const struct doctor_check *const visit_checks[];

extern const struct doctor_check visit_worker, visit_leftovers, visit_job, visit_cluster,
    visit_neighbours, visit_devices, visit_links;

/* Whether the directory named by --tls or GIMBAL_TLS has certificates for workers, so that the
 * caller is no user; or for others, so that they are not for a worker. Both are false if that is
 * unknown. */
bool visit_as_worker(const struct common *common);
bool visit_as_user(const struct common *common);
/* The node that the worker here is or was in the cluster; NULL: none. */
const Gimbal__NodeStatus *visit_own(const struct visit *visit);
/* Whether it has work or may be given some. */
bool visit_is_alive(const Gimbal__NodeStatus *node);

#endif
