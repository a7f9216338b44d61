/* visit.c - what checks of the cluster share, and the table of checks. */
#include "coordinator/cli/doctor/visit.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/trust/certificate.h"

#include <stdlib.h>
#include <string.h>

const struct doctor_check *const visit_checks[] = {
    &visit_worker,     &visit_leftovers, &visit_job,   &visit_cluster,
    &visit_neighbours, &visit_devices,   &visit_links, NULL,
};

/* The role in the certificate: "worker", "user"; "" if there is none. */
static void read_role(const struct common *common, char out[64])
{
    const char *folder = common->tls ? common->tls : getenv("GIMBAL_TLS");
    struct certificate_facts facts;
    char *text, *path;
    *out = '\0';
    if (!folder || !*folder)
        return;
    path = xasprintf("%s/tls.crt", folder);
    if (file_read(path, &text, NULL) == 0) {
        if (certificate_read(text, &facts, NULL) == 0)
            snprintf(out, 64, "%s", *facts.unit ? facts.unit : facts.name);
        free(text);
    }
    free(path);
}

bool visit_as_worker(const struct common *common)
{
    char role[64];
    read_role(common, role);
    return strcmp(role, "worker") == 0;
}

bool visit_as_user(const struct common *common)
{
    char role[64];
    read_role(common, role);
    return *role && strcmp(role, "worker") != 0;
}

const Gimbal__NodeStatus *visit_own(const struct visit *visit)
{
    for (size_t i = 0; visit->nodes && visit->node && i < visit->nodes->n_nodes; i++)
        if (strcmp(visit->nodes->nodes[i]->name, visit->node) == 0)
            return visit->nodes->nodes[i];
    return NULL;
}

bool visit_is_alive(const Gimbal__NodeStatus *node)
{
    return node->hardware && (node->state == GIMBAL__NODE_STATUS__STATE__ALIVE ||
                              node->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
                              node->state == GIMBAL__NODE_STATUS__STATE__DRAINED);
}
