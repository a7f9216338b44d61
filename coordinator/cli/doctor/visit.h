/* visit.h - what `gimbal doctor` looks at: this machine, by its worker's own program; and the
 * cluster, as far as who asks may see it.
 *
 * A check is a file of checks/ and a row of checks.c. The worker's checks are in its program, for
 * it knows its settings; they come first, in one row here. */
#ifndef COORDINATOR_CLI_DOCTOR_VISIT_H
#define COORDINATOR_CLI_DOCTOR_VISIT_H

#include "common/doctor/doctor.h"
#include "common/hardware/hardware.h"
#include "coordinator/cli/client.h"

#include <stdbool.h>

/* The scene of the checks. */
struct visit {
    const struct invocation *invocation;
    const char *job_path;                /* NULL: none was named */
    bool pairs;                          /* links are to be looked at */
    char *node;                          /* of the worker here; NULL: it does not say */
    struct hardware_report *report;      /* what it would offer; NULL: nothing */
    const Gimbal__ListNodesReply *nodes; /* of the cluster; NULL: it was not seen */
    json_t *links;                       /* of --pairs; NULL: none were looked at */
};

/* All checks in order, ended by NULL. */
extern const struct doctor_check *const visit_checks[];

extern const struct doctor_check visit_worker, visit_leftovers, visit_job, visit_cluster,
    visit_neighbours, visit_devices, visit_links;

/* Whose certificates are in the folder that --tls or GIMBAL_TLS names: workers', and who asks is no
 * user; or others', which are not for a worker. Both are false where that cannot be told. */
bool visit_as_worker(const struct common *common);
bool visit_as_user(const struct common *common);
/* The node that the worker here is, or has been, in the cluster; NULL: none. */
const Gimbal__NodeStatus *visit_own(const struct visit *visit);
/* It can be given work, or has some. */
bool visit_is_alive(const Gimbal__NodeStatus *node);

#endif
