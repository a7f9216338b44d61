/* questions.c - answers callers who ask what plan a job would have: on the devices of all workers
 * that are alive, or on those of a cluster that is only described in a file. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"
#include "coordinator/planning/fleet.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Limit for a cluster from a file, because sorting its devices holds up other calls. */
#define WRITTEN_DEVICES_MAX 4096

static unsigned devices_max(const struct job_config *config)
{
    return config->devices.max ? (unsigned)config->devices.max : UINT_MAX;
}

/* Nothing can be planned for: say whether nodes are missing, drained, or too few. -EAGAIN: there is
 * none at all now; -ENOSPC: they have too few devices. */
static int refuse_few(const struct device_view *all, size_t count, const struct job_config *config,
                      struct error *err)
{
    unsigned usable = 0, drained = 0, nodes = 0; /* devices, devices, drained nodes */
    for (size_t i = 0; i < count; i++) {
        usable += all[i].grantable;
        drained += all[i].draining;
        nodes +=
            all[i].draining && (i == 0 || strcmp(all[i].ref.worker, all[i - 1].ref.worker) != 0);
    }
    if (usable == 0 && nodes == 0)
        return error_set(
            err, -EAGAIN,
            "no node is alive: start one with 'gimbal-worker', which joins once it has "
            "measured its devices");
    if (usable == 0)
        return error_set(err, -EAGAIN,
                         "no node gets jobs now: %u with %u device%s %s drained, and 'gimbal "
                         "undrain NODE' gives one back",
                         nodes, drained, drained == 1 ? "" : "s", nodes == 1 ? "is" : "are");
    return error_set(err, -ENOSPC,
                     "the job needs %lld device%s of one kind, and the nodes that are alive have "
                     "fewer",
                     (long long)config->devices.min, config->devices.min == 1 ? "" : "s");
}

/* Begin a search on what the job could have of these devices if all were idle. Takes the question's
 * job and graph unless it fails. */
static int ask_idle(struct service *service, struct rpc_call *call, const struct question *ask,
                    const struct device_view *all, size_t all_count, struct error *err)
{
    const struct job_config *config = ask->config;
    struct device_view *picked = xcalloc(all_count, sizeof *picked);
    struct planning_request request = {
        .job = ask->config,
        .graph = ask->graph,
        .given = ask->given,
        .devices = picked,
        .device_count =
            fleet_pick(all, all_count, (unsigned)config->devices.min, devices_max(config), picked),
        .devices_max = devices_max(config),
        .cost = ask->cost,
        .clock_cb = service->options.clock_cb,
    };
    int rc = 0;
    if (request.device_count > 0) {
        struct asker *asker = asker_add(service, ASKS_CALL);
        asker->call = call;
        asker->answer_cb = ask->answer_cb;
        asker->until_ms = service_patience_ms(service, call);
        planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request),
                           asker);
    } else {
        rc = refuse_few(all, all_count, config, err);
    }
    free(picked);
    return rc;
}

static int ask_written(struct service *service, struct rpc_call *call, const struct question *ask,
                       struct error *err)
{
    struct inventory inventory;
    int rc = inventory_parse(ask->cluster, strlen(ask->cluster), "cluster file", &inventory, err);
    if (rc == 0 && inventory.view_count > WRITTEN_DEVICES_MAX)
        rc = error_set(
            err, -EINVAL,
            "cluster file: it has %zu devices, and a coordinator plans for at most %d: plan "
            "without one",
            inventory.view_count, WRITTEN_DEVICES_MAX);
    if (rc == 0)
        rc = ask_idle(service, call, ask, inventory.views, inventory.view_count, err);
    inventory_finish(&inventory);
    return rc;
}

static int ask_alive(struct service *service, struct rpc_call *call, const struct question *ask,
                     struct error *err)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    int rc = ask_idle(service, call, ask, all, count, err);
    free(all);
    return rc;
}

void service_plan_dry(struct service *service, struct rpc_call *call, const struct question *ask)
{
    struct error err;
    int rc =
        ask->cluster ? ask_written(service, call, ask, &err) : ask_alive(service, call, ask, &err);
    if (rc == 0)
        return;
    if (rc == -ENOSPC)
        rpc_call_fail(call, COORDINATOR_NO_PLAN, "%s", err.text);
    else
        rpc_call_fail_errno(call, rc, &err);
    graph_destroy(ask->graph);
    job_config_destroy(ask->config);
}
