/* wire.c - jobs and nodes as users see them, and all that they are told of one job. */
#include "coordinator/service/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "coordinator/planning/fleet.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/dossiers.h"

/* The queue's states by their public names. */
static const Gimbal__JobStatus__State job_states[JOB_STATES] = {
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
static char *job_print_reason(const struct job *job, const struct dossier *dossier)
{
    if (job->state == JOB_PENDING && dossier->refusal.text[0] &&
        job->devices_needed > job->devices_min)
        return xasprintf("%s: %s", job->words, dossier->refusal.text);
    return xstrdup(job->words);
}

/* The last steps may be reported after the last rank has stopped, when the job's record is closed;
 * so they are taken from telemetry. */
static void wire_progress(Gimbal__JobStatus *message, const struct job *job,
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
        if (!job_ended(job))
            message->tokens_per_s = steps_tokens_per_s(&measured->steps);
    }
}

Gimbal__JobStatus *job_to_wire(const struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    const struct job_telemetry *measured = telemetry_find(state->telemetry, job->id);
    Gimbal__JobStatus *message = xcalloc(1, sizeof *message);
    gimbal__job_status__init(message);
    message->job = xstrdup(job->id);
    message->name = xstrdup(job->name);
    message->user = xstrdup(job->user);
    message->state = job_states[job->state];
    message->reason = job_print_reason(job, dossier);
    message->cause = xstrdup(job_reason_name(job->reason));
    message->epoch = job->epoch;
    message->restarts = job->restarts;
    message->restarts_max = job->restarts_max;
    message->step_count = job->steps;
    message->checkpoint_step = job->checkpoint_step;
    char *checkpoint = checkpoints_newest(state, job);
    message->checkpoint = checkpoint ? checkpoint : xstrdup("");
    char *root = checkpoints_root(state, job);
    message->checkpoint_folder = root ? root : xstrdup("");
    message->origin = xstrdup(job->origin);
    message->origin_step = job->origin_step;
    wire_progress(message, job, measured);
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

static Gimbal__NodeStatus__State worker_wire_state(const struct worker *worker)
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
static void wire_network(Gimbal__Device *device, const struct state *state,
                         const struct worker *worker, enum hardware_kind kind)
{
    struct profile profile;
    struct hardware_link link;
    if (!conditions_network(state, worker->report->host, kind, &link) ||
        profile_decode(device->profile_json, &profile, NULL) < 0)
        return;
    fleet_set_network(&profile, kind, &link, worker->report->network_cards);
    free(device->profile_json);
    device->profile_json = profile_encode(&profile);
}

/* For each device: its holder, its slowdown, and its distance from other hosts. */
static void wire_devices(Gimbal__NodeStatus *message, const struct state *state,
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
        message->device_slowdowns[i] = conditions_slowdown(state, &ref);
        wire_network(message->hardware->devices[i], state, worker, worker->report->devices[i].kind);
    }
}

char *worker_print_mark(uint64_t instance, char out[WORKER_MARK_SIZE])
{
    snprintf(out, WORKER_MARK_SIZE, "%016" PRIx64 "\n", instance);
    return out;
}

Gimbal__NodeStatus *worker_to_wire(const struct state *state, const struct worker *worker)
{
    char mark[WORKER_MARK_SIZE];
    uint64_t now_ms = state_now_ms(state);
    Gimbal__NodeStatus *message = xcalloc(1, sizeof *message);
    gimbal__node_status__init(message);
    message->name = xstrdup(worker->name);
    message->mark = xstrdup(worker_print_mark(worker->instance, mark));
    message->state = worker_wire_state(worker);
    message->reason = xstrdup(worker->dead && *worker->lost_reason ? worker->lost_reason
                              : worker->draining                   ? worker->drain_reason
                                                                   : "");
    message->heartbeat_age_ms = now_ms > worker->heard_ms ? now_ms - worker->heard_ms : 0;
    message->hardware = hardware_report_to_wire(worker->report);
    wire_devices(message, state, worker);
    return message;
}

static void details_evaluations(const struct job_telemetry *measured, struct job_details *details)
{
    size_t count = measured->evaluations.count;
    Gimbal__EvaluationRecord *items = details->evaluations = xcalloc(count, sizeof *items);
    Gimbal__GetJobReply *reply = &details->reply;
    reply->evaluations = xcalloc(count, sizeof(Gimbal__EvaluationRecord *));
    for (; reply->n_evaluations < count; reply->n_evaluations++) {
        Gimbal__EvaluationRecord *item = &items[reply->n_evaluations];
        gimbal__evaluation_record__init(item);
        item->step = measured->evaluations.items[reply->n_evaluations].step;
        item->targets = measured->evaluations.items[reply->n_evaluations].targets;
        item->loss = measured->evaluations.items[reply->n_evaluations].loss;
        reply->evaluations[reply->n_evaluations] = item;
    }
}

static void details_times(const struct job_telemetry *measured, struct job_details *details)
{
    const struct instructions *instructions = &measured->instructions;
    Gimbal__InstructionTimes *items = details->times = xcalloc(instructions->count, sizeof *items);
    Gimbal__GetJobReply *reply = &details->reply;
    reply->times = xcalloc(instructions->count, sizeof(Gimbal__InstructionTimes *));
    for (; reply->n_times < instructions->count; reply->n_times++) {
        struct instruction_sums *kind = &instructions->kinds[reply->n_times];
        Gimbal__InstructionTimes *item = &items[reply->n_times];
        gimbal__instruction_times__init(item);
        item->block_type = kind->block;
        item->instruction = kind->class;
        item->count = kind->count;
        item->seconds = kind->measured_s;
        item->predicted_seconds = kind->predicted_s;
        item->median_seconds = instruction_time_median_s(kind);
        item->median_ratio = instruction_ratio_median(kind);
        reply->times[reply->n_times] = item;
    }
}

static void details_measured(const struct job_telemetry *measured, struct job_details *details)
{
    details_evaluations(measured, details);
    details_times(measured, details);
    details->reply.sample.data = (uint8_t *)measured->evaluations.text;
    details->reply.sample.len = measured->evaluations.text_size;
}

void job_details_begin(struct job_details *details, const struct state *state,
                       const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    const struct job_telemetry *measured = curves_whole(state, job);
    Gimbal__GetJobReply *reply = &details->reply;
    *details = (struct job_details){.reply = GIMBAL__GET_JOB_REPLY__INIT,
                                    .spec = GIMBAL__JOB_SPEC__INIT,
                                    .plan = GIMBAL__PLAN__INIT};
    details->spec.name = job->name;
    details->spec.user = job->user;
    details->spec.yaml = job->text;
    reply->spec = &details->spec;
    reply->status = job_to_wire(state, job);
    if (dossier->planning.plan) {
        details->plan.id = dossier->planning.plan->id;
        details->plan.json = dossier->planning.json;
        reply->plan = &details->plan;
    }
    if (dossier->planning.candidates)
        reply->candidates = dossier->planning.candidates;
    if (measured)
        details_measured(measured, details);
    reply->checkpoints = checkpoints_to_wire(state, job, &reply->n_checkpoints);
}

void job_details_finish(struct job_details *details)
{
    Gimbal__GetJobReply *reply = &details->reply;
    for (size_t i = 0; i < reply->n_checkpoints; i++)
        gimbal__checkpoint__free_unpacked(reply->checkpoints[i], NULL);
    free(reply->checkpoints);
    free(reply->evaluations);
    free(reply->times);
    free(details->evaluations);
    free(details->times);
    gimbal__job_status__free_unpacked(reply->status, NULL);
}
