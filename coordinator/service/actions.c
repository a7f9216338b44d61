/* actions.c - carries out the actions of jobs: holds devices, asks for plans, tells workers, and
 * cleans up what is left of an epoch.
 *
 * This changes only what this process knows and what is put into the store. Answers are collected
 * and leave once the store has been committed; see service_poll(). */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <stdlib.h>

static void hold(struct service *service, const struct job *job)
{
    struct error err;
    struct device_ref *refs = xcalloc(job->rank_count, sizeof *refs);
    size_t count = job_devices(job, refs);
    if (membership_hold(service->membership, job->id, refs, count, &err) < 0)
        log_line(LOG_ERROR, "%s: hold its devices: %s", job->id, err.text);
    free(refs);
}

/* Find each rank's address and the id of its device, as its worker reported them; "" if unknown. */
static void find_places(const struct service *service, const struct job *job,
                        const char **addresses, const char **devices)
{
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *ref = &job->ranks[i].device;
        const struct worker *worker = membership_find(service->membership, ref->worker);
        const struct hardware_report *report = worker ? worker->report : NULL;
        bool there = report && ref->index < report->device_count;
        addresses[i] = report && report->address ? report->address : "";
        devices[i] = there && report->devices[ref->index].id ? report->devices[ref->index].id : "";
    }
}

static void assign(struct service *service, const struct job *job)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    const char **addresses = xcalloc(job->rank_count, sizeof(char *));
    const char **devices = xcalloc(job->rank_count, sizeof(char *));
    find_places(service, job, addresses, devices);
    char *root = service_checkpoint_root(service, job);
    char *newest = service_newest_checkpoint(service, job);
    struct assignments_epoch epoch = {
        .job = job,
        .trainers = job_trainers(job),
        .orphan_ms = dossier->config ? (uint64_t)(dossier->config->elastic.orphan * 1000) : 0,
        .measures_links = service_wants_links(service, job),
        .copy_every = dossier->planning.safety.copy_every,
        .no_copies = dossier->planning.safety.no_room,
        .checkpoint_root = root,
        .checkpoint = newest,
        .plan_id = dossier->planning.plan->id,
        .plan_json = dossier->planning.json,
        .hashes = dossier->planning.hashes,
        .compute_s = dossier->planning.compute_s,
        .addresses = addresses,
        .devices = devices,
    };
    assignments_assign(service->assignments, &epoch);
    free(newest);
    free(root);
    free(devices);
    free(addresses);
}

/* No rank of the epoch has anything left to ask; those that still wait are woken after the turn. */
static void release(struct service *service, const struct job *job)
{
    char parked[PARKED_SIZE];
    struct error err;
    if (membership_hold(service->membership, job->id, NULL, 0, &err) < 0)
        log_line(LOG_ERROR, "%s: release its devices: %s", job->id, err.text);
    rendezvous_forget(service->rendezvous, job->id);
    store_delete_values(service->options.store, job->id, "");
    service->released = grow(service->released, service->released_count,
                             &service->released_capacity, sizeof *service->released);
    service->released[service->released_count++] =
        xstrdup(rendezvous_parked(parked, job->id, job->epoch));
}

static void follow(struct service *service, const struct job *job)
{
    service->growth_due |= job->state == JOB_RUNNING || job_ended(job);
    struct dossier *dossier = dossier_find(service, job->id);
    replan_follow(&dossier->replan, job, &dossier->planning, service_now_ms(service));
}

/* An action that the job's later state has overtaken is dropped. */
static void carry_out(struct service *service, const struct job_action *action)
{
    const struct job *job = jobs_find(service->jobs, action->job);
    if (!job)
        return;
    bool current = action->epoch == job->epoch;
    switch (action->kind) {
    case JOB_ACTION_STORE:
        store_put_job(service->options.store, job);
        follow(service, job);
        service_tell_job(service, job);
        break;
    case JOB_ACTION_HOLD:
        if (job->holding)
            hold(service, job);
        break;
    case JOB_ACTION_PLAN:
        if (current && job->state == JOB_PLANNING)
            service_plan_job(service, job);
        break;
    case JOB_ACTION_ASSIGN:
        if (current && job->state == JOB_STARTING)
            assign(service, job);
        break;
    case JOB_ACTION_GO:
        if (current && (job->state == JOB_RUNNING || job->state == JOB_PAUSING))
            assignments_go(service->assignments, job);
        break;
    case JOB_ACTION_PAUSE:
        if (current && job->state == JOB_PAUSING)
            assignments_pause(service->assignments, job);
        break;
    case JOB_ACTION_STOP:
        if (current)
            assignments_cancel(service->assignments, job);
        break;
    case JOB_ACTION_QUIESCE:
        if (current && job->state == JOB_REPLANNING)
            assignments_quiesce(service->assignments, job);
        break;
    case JOB_ACTION_DROP:
        assignments_drop(service->assignments, job);
        break;
    case JOB_ACTION_RELEASE:
        if (!job->holding)
            release(service, job);
        break;
    }
}

bool service_carry_out(struct service *service)
{
    struct job_actions actions = service->actions;
    service->actions = (struct job_actions){0};
    for (size_t i = 0; i < actions.count; i++)
        carry_out(service, &actions.items[i]);
    bool any = actions.count > 0;
    jobs_actions_finish(&actions);
    return any;
}
