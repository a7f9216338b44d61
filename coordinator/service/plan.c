/* plan.c - who waits for a search, and which devices it may use: those granted to a job, or all
 * that are alive.
 *
 * Searches run beside this thread. An answer that comes when the job is in another epoch, or its
 * caller's patience is over, is nobody's: the search is stopped as soon as that is known. */
#include "coordinator/service/internal.h"

#include "common/base/memory.h"
#include "coordinator/planning/inventory.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a cluster that is only written down: sorting them holds up other calls. */
#define WRITTEN_DEVICES_MAX 4096
#define SLOWDOWN_SAME 0.05

static unsigned devices_max(const struct job_config *config)
{
    return config->devices.max ? (unsigned)config->devices.max : UINT_MAX;
}

/* Of all views, those of the job's devices, in the order of its ranks. */
static size_t pick_granted(const struct job *job, const struct device_view *all, size_t all_count,
                           struct device_view *picked)
{
    size_t count = 0;
    for (size_t i = 0; i < job_trainers(job); i++)
        for (size_t j = 0; j < all_count; j++)
            if (device_ref_equal(&all[j].ref, &job->ranks[i].device))
                picked[count++] = all[j];
    return count;
}

bool service_plan_serves(const struct service *service, const struct job *job,
                         const struct planning *planning)
{
    size_t count = planning->plan && planning->devices ? planning->rank_count : 0;
    bool same = count > 0 && count == job_trainers(job);
    for (size_t i = 0; i < count && same; i++) {
        size_t found = 0;
        while (found < count && !device_ref_equal(&planning->devices[found], &job->ranks[i].device))
            found++;
        double slowdown = service_slowdown(service, &job->ranks[i].device);
        same = found < count && fabs(planning->slowdowns[found] - slowdown) < SLOWDOWN_SAME;
    }
    return same;
}

static bool offers(const struct device_view *views, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        char offered[HARDWARE_NAME_SIZE + 16];
        snprintf(offered, sizeof offered, "%s/%u", views[i].ref.worker, views[i].ref.index);
        if (strcmp(offered, name) == 0)
            return true;
    }
    return false;
}

int service_check_devices(const struct service *service, const struct plan *plan, struct error *err)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        const char *name = plan_device(plan, rank);
        if (name && !offers(all, count, name))
            rc = error_set(err, -ESTALE,
                           "the plan puts rank %d on %s, and no worker that is alive offers that: "
                           "the cluster is no longer the one that it was made for; plan again",
                           rank, name);
    }
    free(all);
    return rc;
}

static struct asker *add_asker(struct service *service)
{
    struct asker *asker = xcalloc(1, sizeof *asker);
    service->askers = grow(service->askers, service->asker_count, &service->asker_capacity,
                           sizeof(struct asker *));
    service->askers[service->asker_count++] = asker;
    return asker;
}

static void remove_asker(struct service *service, struct asker *asker)
{
    size_t i = 0;
    while (service->askers[i] != asker)
        i++;
    service->askers[i] = service->askers[--service->asker_count];
    free(asker->devices);
    free(asker);
}

static int read_job(const struct job *job, struct planning_request *request, struct error *err)
{
    int rc = job_config_parse(job->text, strlen(job->text), "job file", &request->job, err);
    if (rc < 0)
        return rc;
    rc = planner_graph(request->job, &request->graph, err);
    if (rc < 0)
        job_config_destroy(request->job);
    return rc;
}

int service_plan_job(struct service *service, const struct job *job, struct error *err)
{
    struct planning_request request = {
        .given = job->given[0] ? job->given : NULL,
        .devices_max = job->devices_max,
        .hurry = dossier_find(service, job->id)->replan.going,
        .clock_cb = service->options.clock_cb,
    };
    int rc = read_job(job, &request, err);
    if (rc < 0)
        return rc;
    struct device_view *all, *granted;
    size_t all_count = membership_devices(service->membership, &all);
    service_mark_slow(service, all, all_count);
    request.devices = granted = xcalloc(all_count, sizeof *granted);
    request.device_count = pick_granted(job, all, all_count, granted);
    struct asker *asker = add_asker(service);
    asker->kind = ASKS_JOB;
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    asker->until_ms = UINT64_MAX;
    planning_queue_add(service->plans, PLANNING_JOB, planning_task_create(&request), asker);
    free(granted);
    free(all);
    return 0;
}

struct device_ref *service_refs(const struct device_view *views, size_t count)
{
    struct device_ref *refs = xcalloc(count, sizeof *refs);
    for (size_t i = 0; i < count; i++)
        refs[i] = views[i].ref;
    return refs;
}

void service_plan_beside(struct service *service, enum asks kind, const struct job *job,
                         const struct device_view *devices, size_t count)
{
    struct planning_request request = {
        .devices = devices,
        .device_count = count,
        .devices_max = job->devices_max,
        .clock_cb = service->options.clock_cb,
    };
    if (read_job(job, &request, NULL) < 0)
        return; /* it runs all the same */
    struct asker *asker = add_asker(service);
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    asker->kind = kind;
    asker->devices = service_refs(devices, count);
    asker->device_count = count;
    asker->hardware = service->hardware;
    asker->until_ms = UINT64_MAX;
    planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request), asker);
}

/* Begin to search on what the job could have of these devices, were all idle. Takes the question's
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
        struct asker *asker = add_asker(service);
        asker->call = call;
        asker->answer_cb = ask->answer_cb;
        asker->until_ms = service_patience_ms(service, call);
        planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request),
                           asker);
    } else {
        rc = error_set(err, -EBUSY,
                       "the job needs %lld devices of one kind, and the nodes that are alive have "
                       "fewer",
                       (long long)config->devices.min);
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
        rc = error_set(err, -EINVAL,
                       "cluster file: it has %zu devices, a coordinator plans for up to %d: plan "
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
    rpc_call_fail_errno(call, rc, &err);
    graph_destroy(ask->graph);
    job_config_destroy(ask->config);
}

/* Of a question, of a job that waits for just this plan, or of one that runs. */
static bool still_asks(const struct service *service, const struct asker *asker)
{
    if (asker->call)
        return asker->until_ms > service_now_ms(service);
    const struct job *job = jobs_find(service->jobs, asker->job);
    return job && job->state == (asker->kind == ASKS_JOB ? JOB_PLANNING : JOB_RUNNING) &&
           job->epoch == asker->epoch;
}

/* The next one may be searched. */
static void end_spare(struct service *service, const struct asker *asker)
{
    struct dossier *dossier = dossier_find(service, asker->job);
    if (dossier && dossier->spares.epoch == asker->epoch)
        dossier->spares.asked = false;
}

static void answer(struct service *service, struct asker *asker, struct planning_answer *answer)
{
    switch (asker->kind) {
    case ASKS_CALL:
        if (answer->rc < 0)
            rpc_call_fail_errno(asker->call, answer->rc, &answer->err);
        else
            asker->answer_cb(asker->call, &answer->planning);
        break;
    case ASKS_JOB:
        service_planned(service, jobs_find(service->jobs, asker->job), answer);
        break;
    case ASKS_TRIAL:
        service_take_trial(service, jobs_find(service->jobs, asker->job), answer);
        service_keep_spare(service, asker, answer);
        break;
    case ASKS_SPARE:
        service_keep_spare(service, asker, answer);
        end_spare(service, asker);
        service_consider_spares(service);
        break;
    }
}

static void give_up(struct service *service, struct asker *asker)
{
    planning_queue_withdraw(service->plans, asker);
    if (asker->kind == ASKS_SPARE)
        end_spare(service, asker);
    if (asker->call)
        rpc_call_fail(asker->call, RPC_DEADLINE_EXCEEDED,
                      "no plan was found in time: ask with a longer --timeout, for fewer devices, "
                      "or with 'search: uniform'");
    remove_asker(service, asker);
}

void service_take_plans(struct service *service)
{
    struct planning_answer found;
    for (size_t i = service->asker_count; i-- > 0;)
        if (!still_asks(service, service->askers[i]))
            give_up(service, service->askers[i]);
    while (planning_queue_take(service->plans, &found)) {
        answer(service, found.asker, &found);
        remove_asker(service, found.asker);
        planning_finish(&found.planning);
    }
}

uint64_t service_plans_next_ms(const struct service *service)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < service->asker_count; i++)
        if (service->askers[i]->until_ms < next_ms)
            next_ms = service->askers[i]->until_ms;
    return next_ms;
}

void service_forget_askers(struct service *service)
{
    while (service->asker_count > 0)
        remove_asker(service, service->askers[0]);
    free(service->askers);
}
