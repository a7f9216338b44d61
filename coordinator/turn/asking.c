/* asking.c - a list of askers, and the kind that callers are. */
#include "coordinator/turn/asking.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/coordinator_service.h"
#include "coordinator/planning/fleet.h"
#include "coordinator/turn/conditions.h"

/* Limit for a cluster from a file, because sorting its devices holds up other calls. */
#define WRITTEN_DEVICES_MAX 4096

static void asking_remove(struct asking *asking, struct asker *asker)
{
    size_t i = 0;
    while (asking->items[i] != asker)
        i++;
    asking->items[i] = asking->items[--asking->count];
    free(asker->devices);
    free(asker);
}

void asking_add(struct state *state, const struct asker *from,
                const struct planning_request *request)
{
    struct asking *asking = state->asking;
    struct asker *asker = xcalloc(1, sizeof *asker);
    *asker = *from;
    asking->items = grow(asking->items, asking->count, &asking->capacity, sizeof(struct asker *));
    asking->items[asking->count++] = asker;
    planning_queue_add(state->plans, asker->kind->queue, planning_task_create(request), asker);
}

struct asker asking_for(const struct asking_kind *kind, const struct job *job)
{
    struct asker asker = {.kind = kind, .epoch = job->epoch, .until_ms = UINT64_MAX};
    memcpy(asker.job, job->id, sizeof asker.job);
    return asker;
}

bool asking_is_in(const struct state *state, const struct asker *asker, enum job_state in)
{
    const struct job *job = jobs_find(state->jobs, asker->job);
    return job && job->state == in && job->epoch == asker->epoch;
}

static void asking_give_up(struct state *state, struct asker *asker)
{
    planning_queue_withdraw(state->plans, asker);
    if (asker->kind->give_up_cb)
        asker->kind->give_up_cb(state, asker);
    asking_remove(state->asking, asker);
}

void asking_take(struct state *state)
{
    struct planning_answer found;
    for (size_t i = state->asking->count; i-- > 0;) {
        struct asker *asker = state->asking->items[i];
        if (!asker->kind->wanted_cb(state, asker))
            asking_give_up(state, asker);
    }
    while (planning_queue_take(state->plans, &found)) {
        struct asker *asker = found.asker;
        asker->kind->take_cb(state, asker, &found);
        asking_remove(state->asking, asker);
        planning_finish(&found.planning);
    }
}

uint64_t asking_next_ms(const struct state *state)
{
    const struct asking *asking = state->asking;
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < asking->count; i++)
        if (asking->items[i]->until_ms < next_ms)
            next_ms = asking->items[i]->until_ms;
    return next_ms;
}

void asking_finish(struct asking *asking)
{
    while (asking->count > 0)
        asking_remove(asking, asking->items[0]);
    free(asking->items);
    *asking = (struct asking){0};
}

/* ---- callers that ask what plan a job would have ---- */

static bool call_wanted(const struct state *state, const struct asker *asker)
{
    return asker->until_ms > state_now_ms(state);
}

static void call_fail(struct rpc_call *call, int rc, const struct error *err)
{
    if (rc == -ENOSPC)
        rpc_call_fail(call, COORDINATOR_NO_PLAN, "%s", err->text);
    else
        rpc_call_fail_errno(call, rc, err);
}

static void call_take(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    (void)state;
    if (answer->rc < 0)
        call_fail(asker->call, answer->rc, &answer->err);
    else
        asker->answer_cb(asker->call, &answer->planning);
}

static void call_give_up(struct state *state, struct asker *asker)
{
    (void)state;
    rpc_call_fail(asker->call, RPC_DEADLINE_EXCEEDED,
                  "no plan was found in time: try a longer --timeout, fewer devices, or "
                  "'search: uniform'");
}

static const struct asking_kind asks_call = {
    .queue = PLANNING_QUESTION,
    .wanted_cb = call_wanted,
    .take_cb = call_take,
    .give_up_cb = call_give_up,
};

static unsigned dry_devices_max(const struct job_config *config)
{
    return config->devices.max ? (unsigned)config->devices.max : UINT_MAX;
}

/* Nothing can be planned for: say whether nodes are missing, drained, or too few. -EAGAIN: there is
 * none at all now; -ENOSPC: they have too few devices. */
static int dry_refuse_few(const struct device_view *all, size_t count,
                          const struct job_config *config, struct error *err)
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

/* Begin a search on what the job could have of these devices if all were idle. Takes the caller's
 * job and graph unless it fails. */
static int dry_ask_idle(struct state *state, struct rpc_call *call, const struct dry_plan *ask,
                        const struct device_view *all, size_t all_count, struct error *err)
{
    const struct job_config *config = ask->config;
    struct device_view *picked = xcalloc(all_count, sizeof *picked);
    struct planning_request request = {
        .job = ask->config,
        .graph = ask->graph,
        .given = ask->given,
        .devices = picked,
        .device_count = fleet_pick(all, all_count, (unsigned)config->devices.min,
                                   dry_devices_max(config), picked),
        .devices_max = dry_devices_max(config),
        .cost = ask->cost,
        .clock_cb = state->options.clock_cb,
    };
    int rc = 0;
    if (request.device_count > 0) {
        const struct asker asker = {.kind = &asks_call,
                                    .call = call,
                                    .answer_cb = ask->answer_cb,
                                    .until_ms = state_patience_ms(state, call)};
        asking_add(state, &asker, &request);
    } else {
        rc = dry_refuse_few(all, all_count, config, err);
    }
    free(picked);
    return rc;
}

static int dry_ask_written(struct state *state, struct rpc_call *call, const struct dry_plan *ask,
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
        rc = dry_ask_idle(state, call, ask, inventory.views, inventory.view_count, err);
    inventory_finish(&inventory);
    return rc;
}

static int dry_ask_alive(struct state *state, struct rpc_call *call, const struct dry_plan *ask,
                         struct error *err)
{
    struct device_view *all;
    size_t count = conditions_views(state, &all);
    int rc = dry_ask_idle(state, call, ask, all, count, err);
    free(all);
    return rc;
}

void asking_dry(struct state *state, struct rpc_call *call, const struct dry_plan *ask)
{
    struct error err;
    int rc = ask->cluster ? dry_ask_written(state, call, ask, &err)
                          : dry_ask_alive(state, call, ask, &err);
    if (rc == 0)
        return;
    call_fail(call, rc, &err);
    graph_destroy(ask->graph);
    job_config_destroy(ask->config);
}
