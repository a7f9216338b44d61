/* wire.c - jobs and nodes as users see them. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"
#include "common/hardware/wire.h"
#include "coordinator/planning/fleet.h"

#include <stdlib.h>

/* The queue's states by their public names. */
static const Gimbal__JobStatus__State states[JOB_STATES] = {
    [JOB_NEW] = GIMBAL__JOB_STATUS__STATE__UNKNOWN,
    [JOB_PENDING] = GIMBAL__JOB_STATUS__STATE__PENDING,
    [JOB_PLANNING] = GIMBAL__JOB_STATUS__STATE__PLANNING,
    [JOB_STARTING] = GIMBAL__JOB_STATUS__STATE__STARTING,
    [JOB_RUNNING] = GIMBAL__JOB_STATUS__STATE__RUNNING,
    [JOB_PAUSING] = GIMBAL__JOB_STATUS__STATE__PAUSING,
    [JOB_PAUSED] = GIMBAL__JOB_STATUS__STATE__PAUSED,
    [JOB_RELEASING] = GIMBAL__JOB_STATUS__STATE__RELEASING,
    [JOB_CANCELLING] = GIMBAL__JOB_STATUS__STATE__CANCELLING,
    [JOB_FAILING] = GIMBAL__JOB_STATUS__STATE__FAILING,
    [JOB_REPLANNING] = GIMBAL__JOB_STATUS__STATE__REPLANNING,
    [JOB_DONE] = GIMBAL__JOB_STATUS__STATE__DONE,
    [JOB_FAILED] = GIMBAL__JOB_STATUS__STATE__FAILED,
    [JOB_CANCELLED] = GIMBAL__JOB_STATUS__STATE__CANCELLED,
};

/* Why the job waits, with the planner's message if memory is the reason. */
static char *print_reason(const struct job *job, const struct dossier *dossier)
{
    if (job->state == JOB_PENDING && dossier->refusal.text[0] &&
        job->devices_needed > job->devices_min)
        return xasprintf("%s: %s", job->words, dossier->refusal.text);
    return xstrdup(job->words);
}

/* The last steps may be reported after the last rank has stopped, when the job's record is closed;
 * so they are taken from telemetry. */
static void tell_progress(Gimbal__JobStatus *message, const struct job *job,
                          const struct job_telemetry *measured)
{
    const struct step_point *last = measured ? steps_last(&measured->steps) : NULL;
    message->step = job->step;
    message->loss = job->loss;
    message->tokens_per_s = job->tokens_per_s;
    if (!last)
        return;
    message->step_time_s = steps_time_median_s(&measured->steps);
    bool of_epoch = measured->steps.epoch == job->epoch && job->state != JOB_PENDING;
    if (of_epoch && last->step >= job->step) {
        message->step = last->step;
        message->loss = last->loss;
        message->tokens_per_s = steps_tokens_per_s(&measured->steps);
    }
}

Gimbal__JobStatus *job_to_wire(const struct service *service, const struct job *job)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    const struct job_telemetry *measured = telemetry_find(service->telemetry, job->id);
    Gimbal__JobStatus *message = xcalloc(1, sizeof *message);
    gimbal__job_status__init(message);
    message->job = xstrdup(job->id);
    message->name = xstrdup(job->name);
    message->user = xstrdup(job->user);
    message->state = states[job->state];
    message->reason = print_reason(job, dossier);
    message->cause = xstrdup(job_reason_name(job->reason));
    message->epoch = job->epoch;
    message->restarts = job->restarts;
    message->restarts_max = job->restarts_max;
    message->step_count = job->steps;
    message->checkpoint_step = job->checkpoint_step;
    char *checkpoint = service_newest_checkpoint(service, job);
    message->checkpoint = checkpoint ? checkpoint : xstrdup("");
    tell_progress(message, job, measured);
    if (dossier->planning.plan)
        message->predicted_step_time_s = dossier->planning.plan->predicted.step_time_s;
    message->plan_id = xstrdup(job->plan);
    size_t count = job->state == JOB_PENDING ? 0 : job_trainers(job);
    message->devices = xcalloc(count, sizeof(char *));
    for (; message->n_devices < count; message->n_devices++) {
        const struct device_ref *device = &job->ranks[message->n_devices].device;
        message->devices[message->n_devices] = xasprintf("%s/%u", device->worker, device->index);
    }
    message->submitted_unix_ms = job->submitted_ms;
    message->finished_unix_ms = job->ended_ms;
    return message;
}

static Gimbal__NodeStatus__State node_state(const struct worker *worker)
{
    switch (worker_state(worker)) {
    case WORKER_LOST:
        return GIMBAL__NODE_STATUS__STATE__LOST;
    case WORKER_SUSPECT:
        return GIMBAL__NODE_STATUS__STATE__SUSPECT;
    case WORKER_ALIVE:
        return GIMBAL__NODE_STATUS__STATE__ALIVE;
    case WORKER_DRAINING:
        break;
    }
    for (size_t i = 0; i < worker->report->device_count; i++)
        if (worker->holders[i][0])
            return GIMBAL__NODE_STATUS__STATE__DRAINING;
    return GIMBAL__NODE_STATUS__STATE__DRAINED;
}

/* A probe sees one machine only, so what is between machines is in no report and is added here. */
static void tell_network(Gimbal__Device *device, const struct service *service,
                         const struct worker *worker, enum hardware_kind kind)
{
    struct profile profile;
    struct profile_link link;
    if (!service_network(service, worker->report->host, kind, &link) ||
        profile_decode(device->profile_json, &profile, NULL) < 0)
        return;
    fleet_set_network(&profile, kind, &link, worker->report->network_cards);
    free(device->profile_json);
    device->profile_json = profile_encode(&profile);
}

/* For each device: its holder, its slowdown, and its distance from other hosts. */
static void tell_devices(Gimbal__NodeStatus *message, const struct service *service,
                         const struct worker *worker)
{
    size_t count = worker->report->device_count;
    struct device_ref ref = {.instance = worker->instance};
    snprintf(ref.worker, sizeof ref.worker, "%s", worker->name);
    message->device_jobs = xcalloc(count, sizeof(char *));
    message->device_slowdowns = xcalloc(count, sizeof *message->device_slowdowns);
    message->n_device_jobs = message->n_device_slowdowns = count;
    for (size_t i = 0; i < count; i++) {
        ref.index = (unsigned)i;
        message->device_jobs[i] = xstrdup(worker->holders[i]);
        message->device_slowdowns[i] = service_slowdown(service, &ref);
        tell_network(message->hardware->devices[i], service, worker,
                     worker->report->devices[i].kind);
    }
}

Gimbal__NodeStatus *worker_to_wire(const struct service *service, const struct worker *worker)
{
    uint64_t now_ms = service_now_ms(service);
    Gimbal__NodeStatus *message = xcalloc(1, sizeof *message);
    gimbal__node_status__init(message);
    message->name = xstrdup(worker->name);
    message->state = node_state(worker);
    message->reason = xstrdup(worker->dead && *worker->lost_reason ? worker->lost_reason
                              : worker->draining                   ? worker->drain_reason
                                                                   : "");
    message->heartbeat_age_ms = now_ms > worker->heard_ms ? now_ms - worker->heard_ms : 0;
    message->hardware = hardware_report_to_wire(worker->report);
    tell_devices(message, service, worker);
    return message;
}
