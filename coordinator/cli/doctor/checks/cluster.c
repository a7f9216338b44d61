/* cluster.c - the coordinator as seen by the caller: its nodes, their releases, and the state of
 * this node. */
#include "coordinator/cli/doctor/visit.h"

#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"

#include <stdlib.h>
#include <string.h>

/* Whether the caller was told where the cluster is; if not, there need not be one. */
static bool is_told(const struct visit *visit)
{
    const struct common *common = &visit->invocation->common;
    return common->address || common->tls || getenv("GIMBAL_ADDRESS") || getenv("GIMBAL_TLS") ||
           visit->pairs;
}

static void look_at_own(const struct visit *visit, struct findings *out)
{
    const Gimbal__NodeStatus *own = visit_own(visit);
    if (!visit->node)
        return;
    if (!own)
        finding_ok(out, "node '%s' is not in the cluster yet", visit->node);
    else if (own->state == GIMBAL__NODE_STATUS__STATE__ALIVE)
        finding_ok(out, "node '%s' is in the cluster and alive", own->name);
    else if (own->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
             own->state == GIMBAL__NODE_STATUS__STATE__DRAINED)
        finding_warn(out, "'gimbal undrain' if it is to get jobs again",
                     "node '%s' was drained, and gets no jobs: %s", own->name, own->reason);
    else
        finding_warn(out, "start its worker, and read its log",
                     "the coordinator has not heard of node '%s' for %.0f s%s%s", own->name,
                     (double)own->heartbeat_age_ms / 1000, *own->reason ? ": " : "", own->reason);
}

static void look_at_releases(const struct visit *visit, struct findings *out)
{
    size_t others = 0;
    const Gimbal__NodeStatus *first = NULL;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        if (!visit_is_alive(node) || strcmp(node->hardware->release, GIMBAL_VERSION) == 0)
            continue;
        first = first ? first : node;
        others++;
    }
    if (first)
        finding_warn(
            out, "the same release on every machine",
            "%zu node%s not of this release, %s, such as '%s' of %s: a rank refuses a plan "
            "that it lowers to another program",
            others, others == 1 ? " is" : "s are", GIMBAL_VERSION, first->name,
            *first->hardware->release ? first->hardware->release : "none that it names");
}

static void tell(const struct visit *visit, struct findings *out)
{
    size_t alive = 0;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++)
        alive += visit_is_alive(visit->nodes->nodes[i]);
    finding_ok(out, "%s answers; of %zu node%s %zu %s alive",
               client_address(&visit->invocation->common), visit->nodes->n_nodes,
               visit->nodes->n_nodes == 1 ? "" : "s", alive, alive == 1 ? "is" : "are");
    look_at_releases(visit, out);
    look_at_own(visit, out);
}

static void look(void *scene, struct findings *out)
{
    struct visit *visit = scene;
    const struct common *common = &visit->invocation->common;
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply;
    struct error err = {""};
    if (visit_as_worker(common))
        return; /* not a user, and only users may ask */
    int code = client_call_once(common, COORDINATOR_LIST_NODES, &request.base, &reply, &err);
    if (code == EXIT_DONE) {
        visit->nodes = (const Gimbal__ListNodesReply *)reply;
        tell(visit, out);
    } else if (is_told(visit)) {
        finding_block(out, "a user's --address and --tls, or GIMBAL_ADDRESS and GIMBAL_TLS", "%s",
                      err.text);
    }
}

const struct doctor_check visit_cluster = {
    .name = "cluster",
    .about = "the coordinator and its nodes, as a user sees them",
    .cb = look,
};
