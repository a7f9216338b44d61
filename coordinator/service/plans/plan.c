/* plan.c - the plan of a job's epoch: one that is at hand, or the result of a search on exactly the
 * devices that the job was granted; and plans that a running job might move to. */
#include "coordinator/planner/check.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOWDOWN_SAME 0.05

/* Pick the views of the job's devices, in the order of its ranks. */
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

/* Whether the device is as far from other hosts as was planned, as far as anybody has measured. */
static bool is_as_far(const struct service *service, const struct device_ref *device,
                      double planned_s)
{
    const struct worker *worker = membership_find(service->membership, device->worker);
    struct profile_link link;
    return !worker || device->index >= worker->report->device_count ||
           !service_network(service, worker->report->host,
                            worker->report->devices[device->index].kind, &link) ||
           link.seconds_per_byte == planned_s;
}

/* Whether the plan was made for exactly the devices that the job was granted, as they are, and
 * needs no more of their memory than may be planned. */
static bool serves(const struct service *service, const struct job *job,
                   const struct dossier *dossier)
{
    const struct planning *planning = &dossier->planning;
    size_t count = planning->plan && planning->devices ? planning->rank_count : 0;
    bool same = count > 0 && count == job_trainers(job);
    for (size_t i = 0; i < count && same; i++) {
        size_t found = 0;
        while (found < count && !device_ref_equal(&planning->devices[found], &job->ranks[i].device))
            found++;
        double slowdown = service_slowdown(service, &job->ranks[i].device);
        same = found < count && fabs(planning->slowdowns[found] - slowdown) < SLOWDOWN_SAME &&
               is_as_far(service, &job->ranks[i].device, planning->networks[found]) &&
               service_memory_serves(dossier, planning->plan, (int)found, &job->ranks[i].device);
    }
    return same;
}

int service_read_job(const struct job *job, struct planning_request *request, struct error *err)
{
    int rc = job_config_parse(job->text, strlen(job->text), "job file", &request->job, err);
    if (rc < 0)
        return rc;
    rc = planner_graph(request->job, &request->graph, err);
    if (rc < 0)
        job_config_destroy(request->job);
    return rc;
}

static int search(struct service *service, const struct job *job, struct error *err)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    struct planning_request request = {
        .given = job->given[0] ? job->given : NULL,
        .devices_max = job->devices_max,
        .hurry = dossier->replan.going,
        .clock_cb = service->options.clock_cb,
    };
    int rc = service_read_job(job, &request, err);
    if (rc < 0)
        return rc;
    struct device_view *all, *granted;
    size_t all_count = membership_devices(service->membership, &all);
    service_mark_slow(service, all, all_count);
    request.devices = granted = xcalloc(all_count, sizeof *granted);
    request.device_count = pick_granted(job, all, all_count, granted);
    service_mark_scarce(dossier, granted, request.device_count);
    struct asker *asker = asker_add(service, ASKS_JOB);
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    planning_queue_add(service->plans, PLANNING_JOB, planning_task_create(&request), asker);
    free(granted);
    free(all);
    return 0;
}

static void put_plan(struct service *service, const struct job *job,
                     const struct planning *planning)
{
    struct store_plan plan = {planning->json, planning->candidates, planning->hashes,
                              planning->rank_count, planning->compute_s};
    store_put_plan(service->options.store, job, planning->plan->id, &plan);
}

/* No plan is possible: for the job as it is, or (-ENOSPC) on these devices. */
static void refuse(struct service *service, const struct job *job, struct dossier *dossier, int rc)
{
    struct job_event event = {.job = job->id, .epoch = job->epoch};
    event.kind = rc == -ENOSPC ? JOB_EVENT_UNFIT : JOB_EVENT_REFUSED;
    event.words = dossier->refusal.text;
    event.devices_needed = dossier->planning.devices_needed;
    service_apply_own(service, &event);
}

static void take_plan(struct service *service, const struct job *job)
{
    const struct planning *planning = &dossier_find(service, job->id)->planning;
    struct job_event event = {.kind = JOB_EVENT_PLANNED, .job = job->id, .epoch = job->epoch};
    event.plan.id = planning->plan->id;
    event.plan.devices = planning->devices;
    event.plan.device_count = planning->rank_count;
    put_plan(service, job, planning);
    service_tell_plan(service, job);
    service_apply_own(service, &event);
}

/* A search runs on another thread and service_planned() follows, unless the job has the devices
 * that its last plan was made for, as after the death of an executor, or a plan for them was
 * prepared. */
void service_plan_job(struct service *service, const struct job *job)
{
    struct dossier *dossier = dossier_find(service, job->id);
    bool still_serves = serves(service, job, dossier);
    if (!still_serves)
        planning_finish(&dossier->planning);
    dossier->planned_before = still_serves || service_take_spare(service, job, &dossier->planning);
    if (dossier->planned_before) {
        take_plan(service, job);
        return;
    }
    dossier->refusal.text[0] = '\0';
    int rc = search(service, job, &dossier->refusal);
    if (rc < 0)
        refuse(service, job, dossier, rc);
}

void service_planned(struct service *service, const struct job *job, struct planning_answer *answer)
{
    struct dossier *dossier = dossier_find(service, job->id);
    dossier->planning = answer->planning;
    answer->planning = (struct planning){0};
    if (answer->rc < 0) {
        dossier->refusal = answer->err;
        refuse(service, job, dossier, answer->rc);
        return;
    }
    histogram_add(&service->tally.search_us,
                  (uint64_t)(dossier->planning.plan->predicted.wall_s * 1e6));
    take_plan(service, job);
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
        .device_count = count,
        .present = kind == ASKS_TRIAL ? dossier_find(service, job->id)->planning.json : NULL,
        .devices_max = job->devices_max,
        .clock_cb = service->options.clock_cb,
    };
    if (service_read_job(job, &request, NULL) < 0)
        return; /* it goes on with its present plan */
    struct device_view *marked = xcalloc(count, sizeof *marked);
    memcpy(marked, devices, count * sizeof *marked);
    service_mark_scarce(dossier_find(service, job->id), marked, count);
    request.devices = marked;
    struct asker *asker = asker_add(service, kind);
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    asker->devices = service_refs(devices, count);
    asker->device_count = count;
    asker->hardware = service->hardware;
    planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request), asker);
    free(marked);
}
