/* turn.c - what follows from what has happened.
 *
 * Membership's events go to jobs, jobs' actions are carried out, and what carrying them out
 * brings about goes the same way, until nothing is left; only then are free devices granted. So
 * whoever is answered after a turn sees all that followed from the call.
 *
 * Carrying out changes only what this process knows and what is put into the store, and answers
 * are gathered: they leave when the store has it, see service_poll(). */
#include "coordinator/service/internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

int service_apply(struct service *service, const struct job_event *event, struct error *err)
{
    return jobs_apply(service->jobs, event, service_now_ms(service), &service->actions, err);
}

/* An event of our own making: refused only where the job has moved on meanwhile. */
static void apply_own(struct service *service, const struct job_event *event)
{
    struct error err;
    int rc = service_apply(service, event, &err);
    if (rc < 0 && rc != -ESTALE)
        log_line(LOG_ERROR, "%s", err.text);
}

/* As it is now: suspicion is not kept, a new start suspects everybody. */
static void put_worker(struct service *service, const struct membership_event *happened)
{
    if (happened->kind == MEMBERSHIP_SUSPECTED || happened->kind == MEMBERSHIP_RECOVERED)
        return;
    const struct worker *worker = membership_find(service->membership, happened->worker);
    if (worker)
        store_put_worker(service->options.store, worker);
    else
        store_delete_worker(service->options.store, happened->worker);
}

static void act_on_membership(struct service *service, const struct membership_event *happened)
{
    struct job_event event = {.words = happened->reason};
    event.worker.name = happened->worker;
    event.worker.instance = happened->instance;
    switch (happened->kind) {
    case MEMBERSHIP_LOST:
        event.kind = JOB_EVENT_WORKER_LOST;
        assignments_close(service->assignments, happened->instance);
        service_forget_slow(service, happened->instance);
        break;
    case MEMBERSHIP_DRAINING:
        event.kind = JOB_EVENT_WORKER_DRAINS;
        break;
    case MEMBERSHIP_JOINED:
        assignments_open(service->assignments, happened->instance);
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_CHANGED:
        service_forget_spares(service);
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_RECOVERED:
    case MEMBERSHIP_UNDRAINED: /* its devices can be had again */
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    default:
        return;
    }
    apply_own(service, &event);
}

/* True when there was something. */
static bool act_on_happened(struct service *service)
{
    struct membership_events happened = service->happened;
    service->happened = (struct membership_events){0};
    for (size_t i = 0; i < happened.count; i++) {
        put_worker(service, &happened.items[i]);
        service_tell_membership(service, &happened.items[i]);
        act_on_membership(service, &happened.items[i]);
    }
    bool any = happened.count > 0;
    membership_events_finish(&happened);
    return any;
}

static void hold(struct service *service, const struct job *job)
{
    struct error err;
    struct device_ref *refs = xcalloc(job->rank_count, sizeof *refs);
    size_t count = job_devices(job, refs);
    if (membership_hold(service->membership, job->id, refs, count, &err) < 0)
        log_line(LOG_ERROR, "%s: hold its devices: %s", job->id, err.text);
    free(refs);
}

static void put_plan(struct service *service, const struct job *job,
                     const struct planning *planning)
{
    struct store_plan plan = {planning->json, planning->candidates, planning->hashes,
                              planning->rank_count, planning->compute_s};
    store_put_plan(service->options.store, job, planning->plan->id, &plan);
}

/* No plan can be: of the job as it is, or on these devices. */
static void refuse(struct service *service, const struct job *job, struct dossier *dossier, int rc)
{
    struct job_event event = {.job = job->id, .epoch = job->epoch};
    event.kind = rc == -ENOSPC ? JOB_EVENT_UNFIT : JOB_EVENT_REFUSED;
    event.words = dossier->refusal.text;
    event.devices_needed = dossier->planning.devices_needed;
    apply_own(service, &event);
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
    apply_own(service, &event);
}

/* The search goes on beside us, and service_planned() follows; unless the job has the devices that
 * its last plan was made for, as when an executor has died, or one that was searched before. */
static void plan(struct service *service, const struct job *job)
{
    struct dossier *dossier = dossier_find(service, job->id);
    bool serves = service_plan_serves(service, job, &dossier->planning);
    if (!serves)
        planning_finish(&dossier->planning);
    dossier->planned_before = serves || service_take_spare(service, job, &dossier->planning);
    if (dossier->planned_before) {
        take_plan(service, job);
        return;
    }
    dossier->refusal.text[0] = '\0';
    int rc = service_plan_job(service, job, &dossier->refusal);
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
    take_plan(service, job);
}

/* Of each rank, as its worker reported them: where it is found, and what it computes on. */
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

/* Nobody of the epoch has anything to ask any more; who waits is told after the turn. */
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

/* An action that the job's next state has overtaken is not carried out any more. */
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
            plan(service, job);
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

/* True when there was something. */
static bool carry_out_all(struct service *service)
{
    struct job_actions actions = service->actions;
    service->actions = (struct job_actions){0};
    for (size_t i = 0; i < actions.count; i++)
        carry_out(service, &actions.items[i]);
    bool any = actions.count > 0;
    jobs_actions_finish(&actions);
    return any;
}

static void schedule(struct service *service)
{
    struct device_view *devices;
    size_t count = membership_devices(service->membership, &devices);
    jobs_schedule(service->jobs, devices, count, service_now_ms(service), &service->actions);
    free(devices);
}

static void wake(struct service *service)
{
    char parked[PARKED_SIZE];
    uint64_t instance;
    while (assignments_changed(service->assignments, &instance))
        rpc_server_wake(service->server, assignments_parked(parked, instance));
    while (service->released_count > 0) {
        char *name = service->released[--service->released_count];
        rpc_server_wake(service->server, name);
        free(name);
    }
    if (stream_revision(service->events) != service->events_woken) {
        service->events_woken = stream_revision(service->events);
        rpc_server_wake(service->server, EVENTS_STREAM);
    }
}

void service_turn(struct service *service)
{
    bool any = true;
    while (any) {
        any = false;
        while (act_on_happened(service) || carry_out_all(service))
            any = true;
        if (any)
            schedule(service);
    }
    if (service->growth_due) {
        service->growth_due = false;
        service_consider_growth(service);
        service_consider_spares(service);
    }
    wake(service);
}
