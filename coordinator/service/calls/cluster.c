/* cluster.c - the calls about the cluster: its nodes, its history, and what it could run. */
#include "coordinator/planner/check.h"
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void list_nodes(struct rpc_call *call, void *data)
{
    struct service *service = data;
    Gimbal__ListNodesReply reply = GIMBAL__LIST_NODES_REPLY__INIT;
    size_t count = membership_count(service->membership);
    reply.nodes = xcalloc(count, sizeof(Gimbal__NodeStatus *));
    for (; reply.n_nodes < count; reply.n_nodes++)
        reply.nodes[reply.n_nodes] =
            worker_to_wire(service, membership_at(service->membership, reply.n_nodes));
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < count; i++)
        gimbal__node_status__free_unpacked(reply.nodes[i], NULL);
    free(reply.nodes);
}

static void drain(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__DrainRequest *request = rpc_call_request(call);
    struct error err;
    int rc = request->undo
                 ? membership_undrain(service->membership, request->node, &service->happened, &err)
                 : membership_drain(service->membership, request->node, request->reason,
                                    &service->happened, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__DrainReply reply = GIMBAL__DRAIN_REPLY__INIT;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

/* Use the search that the caller names, if any, instead of the job's. */
static void choose_search(struct job_config *config, const char *search)
{
    assert(config);
    if (!search[0])
        return;
    free(config->plan.search);
    config->plan.search = xstrdup(search);
}

static void answer_plan(struct rpc_call *call, const struct planning *planning)
{
    Gimbal__Plan plan = GIMBAL__PLAN__INIT;
    Gimbal__PlanReply reply = GIMBAL__PLAN_REPLY__INIT;
    plan.id = planning->plan->id;
    plan.json = planning->json;
    reply.plan = &plan;
    reply.explanation = planning->candidates;
    rpc_call_reply(call, &reply.base);
}

static void plan(struct rpc_call *call, void *data)
{
    const Gimbal__PlanRequest *request = rpc_call_request(call);
    struct error err;
    struct question question = {
        .answer_cb = answer_plan,
        .cluster = request->cluster_yaml[0] ? request->cluster_yaml : NULL,
    };
    int rc = planning_cost_parse(request->cost, &question.cost, &err);
    if (rc == 0)
        rc = job_config_parse(request->job_yaml, strlen(request->job_yaml), "job file",
                              &question.config, &err);
    if (rc == 0)
        rc = planner_graph(question.config, &question.graph, &err);
    if (rc < 0) {
        job_config_destroy(question.config);
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    choose_search(question.config, request->search);
    service_plan_dry(data, call, &question);
}

const struct service_handler cluster_handlers[] = {
    {COORDINATOR_LIST_NODES, list_nodes},
    {COORDINATOR_DRAIN, drain},
    {COORDINATOR_PLAN, plan},
    {0, NULL},
};
