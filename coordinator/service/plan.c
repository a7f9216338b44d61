/* plan.c - who waits for a search, and which devices it may use: those granted to a job, or all
 * that are alive.
 *
 * Searches run beside this thread. An answer that comes when the job is in another epoch, or its
 * caller's patience is over, is nobody's: the search is stopped as soon as that is known. */
#include "coordinator/service/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static unsigned devices_max(const struct job_config *config)
{
    return config->devices.max ? (unsigned)config->devices.max : UINT_MAX;
}

static bool same_device(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

/* Of all views, those of the job's devices, in the order of its ranks. */
static size_t pick_granted(const struct job *job, const struct device_view *all, size_t all_count,
                           struct device_view *picked)
{
    size_t count = 0;
    for (size_t i = 0; i < job_trainers(job); i++)
        for (size_t j = 0; j < all_count; j++)
            if (same_device(&all[j].ref, &job->ranks[i].device))
                picked[count++] = all[j];
    return count;
}

bool service_plan_serves(const struct job *job, const struct planning *planning)
{
    size_t count = planning->plan && planning->devices ? planning->rank_count : 0;
    bool same = count > 0 && count == job_trainers(job);
    for (size_t i = 0; i < count && same; i++) {
        size_t found = 0;
        while (found < count && !same_device(&planning->devices[found], &job->ranks[i].device))
            found++;
        same = found < count;
    }
    return same;
}

/* As the queue would on an idle cluster: GPUs where there are enough, else CPU devices. */
static size_t pick_alive(unsigned least, unsigned most, const struct device_view *all,
                         size_t all_count, struct device_view *picked)
{
    for (int kind = HARDWARE_GPU; kind >= HARDWARE_CPU; kind--) {
        size_t count = 0;
        for (size_t i = 0; i < all_count && count < most; i++)
            if (all[i].device->kind == (enum hardware_kind)kind && all[i].grantable)
                picked[count++] = all[i];
        if (count > 0 && count >= least)
            return count;
    }
    return 0;
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
        .clock_cb = service->options.clock_cb,
    };
    int rc = read_job(job, &request, err);
    if (rc < 0)
        return rc;
    struct device_view *all, *granted;
    size_t all_count = membership_devices(service->membership, &all);
    request.devices = granted = xcalloc(all_count, sizeof *granted);
    request.device_count = pick_granted(job, all, all_count, granted);
    struct asker *asker = add_asker(service);
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    asker->until_ms = UINT64_MAX;
    planning_queue_add(service->plans, PLANNING_JOB, planning_task_create(&request), asker);
    free(granted);
    free(all);
    return 0;
}

void service_plan_dry(struct service *service, struct rpc_call *call, const struct question *ask)
{
    struct job_config *config = ask->config;
    struct device_view *all, *alive;
    struct error err;
    size_t all_count = membership_devices(service->membership, &all);
    alive = xcalloc(all_count, sizeof *alive);
    struct planning_request request = {
        .job = config,
        .graph = ask->graph,
        .given = ask->given,
        .devices = alive,
        .device_count =
            pick_alive((unsigned)config->devices.min, devices_max(config), all, all_count, alive),
        .devices_max = devices_max(config),
        .cost = ask->cost,
        .clock_cb = service->options.clock_cb,
    };
    if (request.device_count > 0) {
        struct asker *asker = add_asker(service);
        asker->call = call;
        asker->answer_cb = ask->answer_cb;
        asker->until_ms = service_patience_ms(service, call);
        planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request),
                           asker);
    } else {
        error_set(&err, -EBUSY,
                  "the job needs %lld devices of one kind, and the workers that are alive have "
                  "fewer",
                  (long long)config->devices.min);
        rpc_call_fail_errno(call, -EBUSY, &err);
        graph_destroy(ask->graph);
        job_config_destroy(config);
    }
    free(alive);
    free(all);
}

/* Of a question, or of a job that waits for just this plan. */
static bool still_asks(const struct service *service, const struct asker *asker)
{
    if (asker->call)
        return asker->until_ms > service_now_ms(service);
    const struct job *job = jobs_find(service->jobs, asker->job);
    return job && job->state == JOB_PLANNING && job->epoch == asker->epoch;
}

static void answer(struct service *service, const struct asker *asker,
                   struct planning_answer *answer)
{
    if (!asker->call)
        service_planned(service, jobs_find(service->jobs, asker->job), answer);
    else if (answer->rc < 0)
        rpc_call_fail_errno(asker->call, answer->rc, &answer->err);
    else
        asker->answer_cb(asker->call, &answer->planning);
}

static void give_up(struct service *service, struct asker *asker)
{
    planning_queue_withdraw(service->plans, asker);
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
    for (size_t i = 0; i < service->asker_count; i++)
        free(service->askers[i]);
    free(service->askers);
}
