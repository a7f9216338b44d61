/* epoch.c - the plan of the epoch that is about to start: one that is at hand, or the result of a
 * search on exactly the devices that the job was granted. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/plans.h"

#define SLOWDOWN_SAME 0.05

static void epoch_put_plan(struct state *state, const struct job *job,
                           const struct planning *planning)
{
    struct store_plan plan = {planning->json, planning->candidates, planning->hashes,
                              planning->rank_count, planning->compute_s};
    store_put_plan(state->options.store, job, planning->plan->id, &plan);
}

/* No plan is possible: for the job as it is, or (-ENOSPC) on these devices. */
static void epoch_refuse(struct state *state, const struct job *job, struct dossier *dossier,
                         int rc)
{
    struct job_event event = {.job = job->id, .epoch = job->epoch};
    event.kind = rc == -ENOSPC ? JOB_EVENT_UNFIT : JOB_EVENT_REFUSED;
    event.words = dossier->refusal.text;
    event.devices_needed = dossier->planning.devices_needed;
    state_apply_own(state, &event);
}

static void epoch_take_plan(struct state *state, const struct job *job)
{
    const struct planning *planning = &dossier_find(state, job->id)->planning;
    struct job_event event = {.kind = JOB_EVENT_PLANNED, .job = job->id, .epoch = job->epoch};
    event.plan.id = planning->plan->id;
    event.plan.devices = planning->devices;
    event.plan.device_count = planning->rank_count;
    epoch_put_plan(state, job, planning);
    history_tell_plan(state, job);
    state_apply_own(state, &event);
}

static bool epoch_wanted(const struct state *state, const struct asker *asker)
{
    return asking_is_in(state, asker, JOB_PLANNING);
}

static void epoch_take(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    const struct job *job = jobs_find(state->jobs, asker->job);
    struct dossier *dossier = dossier_find(state, job->id);
    dossier->planning = answer->planning;
    answer->planning = (struct planning){0};
    if (answer->rc < 0) {
        dossier->refusal = answer->err;
        epoch_refuse(state, job, dossier, answer->rc);
        return;
    }
    histogram_add(&state->history->search_us,
                  (uint64_t)(dossier->planning.plan->predicted.wall_s * 1e6));
    epoch_take_plan(state, job);
}

static const struct asking_kind asks_epoch = {
    .queue = PLANNING_JOB,
    .wanted_cb = epoch_wanted,
    .take_cb = epoch_take,
};

/* Pick the views of the job's devices, in the order of its ranks. */
static size_t epoch_pick_granted(const struct job *job, const struct device_view *all,
                                 size_t all_count, struct device_view *picked)
{
    size_t count = 0;
    for (size_t i = 0; i < job_trainers(job); i++)
        for (size_t j = 0; j < all_count; j++)
            if (device_ref_equal(&all[j].ref, &job->ranks[i].device))
                picked[count++] = all[j];
    return count;
}

/* Whether the device is as far from other hosts as was planned, as far as anybody has measured. */
static bool device_is_as_far(const struct state *state, const struct device_ref *device,
                             double planned_s)
{
    const struct worker *worker = membership_find(state->membership, device->worker);
    struct hardware_link link;
    return !worker || device->index >= worker->report->device_count ||
           !conditions_network(state, worker->report->host,
                               worker->report->devices[device->index].kind, &link) ||
           link.seconds_per_byte == planned_s;
}

/* Whether the plan was made for exactly the devices that the job was granted, as they are, and
 * needs no more of their memory than may be planned. */
static bool epoch_plan_serves(const struct state *state, const struct job *job,
                              const struct dossier *dossier)
{
    const struct planning *planning = &dossier->planning;
    size_t count = planning->plan && planning->devices ? planning->rank_count : 0;
    bool same = count > 0 && count == job_trainers(job);
    for (size_t i = 0; i < count && same; i++) {
        size_t found = 0;
        while (found < count && !device_ref_equal(&planning->devices[found], &job->ranks[i].device))
            found++;
        double slowdown = conditions_slowdown(state, &job->ranks[i].device);
        same = found < count && fabs(planning->slowdowns[found] - slowdown) < SLOWDOWN_SAME &&
               device_is_as_far(state, &job->ranks[i].device, planning->networks[found]) &&
               conditions_memory_serves(dossier, planning->plan, (int)found, &job->ranks[i].device);
    }
    return same;
}

int epoch_read_job(const struct job *job, struct planning_request *request, struct error *err)
{
    int rc = job_config_parse(job->text, strlen(job->text), "job file", &request->job, err);
    if (rc < 0)
        return rc;
    rc = planner_graph(request->job, &request->graph, err);
    if (rc < 0)
        job_config_destroy(request->job);
    return rc;
}

static int epoch_search(struct state *state, const struct job *job, struct error *err)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    struct planning_request request = {
        .given = job->given[0] ? job->given : NULL,
        .devices_max = job->devices_max,
        .hurry = dossier->replan.going,
        .clock_cb = state->options.clock_cb,
    };
    int rc = epoch_read_job(job, &request, err);
    if (rc < 0)
        return rc;
    struct device_view *all, *granted;
    size_t all_count = conditions_views(state, &all);
    request.devices = granted = xcalloc(all_count, sizeof *granted);
    request.device_count = epoch_pick_granted(job, all, all_count, granted);
    conditions_limit_memory(dossier, granted, request.device_count);
    const struct asker asker = asking_for(&asks_epoch, job);
    asking_add(state, &asker, &request);
    free(granted);
    free(all);
    return 0;
}

/* A search runs on another thread and epoch_take() follows, unless the job has the devices
 * that its last plan was made for, as after the death of an executor, or a plan for them was
 * prepared. */
void epoch_plan(struct state *state, const struct job *job)
{
    struct dossier *dossier = dossier_find(state, job->id);
    bool still_serves = epoch_plan_serves(state, job, dossier);
    if (!still_serves)
        planning_finish(&dossier->planning);
    dossier->planned_before =
        still_serves || spares_take(&dossier->spares, job, &dossier->planning);
    if (dossier->planned_before) {
        epoch_take_plan(state, job);
        return;
    }
    dossier->refusal.text[0] = '\0';
    int rc = epoch_search(state, job, &dossier->refusal);
    if (rc < 0)
        epoch_refuse(state, job, dossier, rc);
}
