/* reports.c - what ranks report while they train: steps, instructions, log lines, evaluations,
 * traces and links as telemetry; and, with their worker's heartbeat, where they are.
 *
 * From there it goes to the job, to conditions, and to what is searched. Devices that compute
 * slower than they should keep their ranks: it is told, and plans take them as they are. A rank
 * that holds up its job is found, told of once, and has its executor ended. What follows is the
 * same as whenever an executor is lost: the others leave the epoch, and the job goes on without it.
 * The verdict is not stored: a coordinator that is restarted before it could act hears the same
 * from the workers again. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "coordinator/service/calls.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/plans.h"
#include "coordinator/turn/turn.h"

/* How many steps a rank may be in one place: a step may take long, and all but one rank of a
 * pipeline wait for most of it. */
#define STEPS_HELD 3
/* Heartbeats that may be missed before a rank's position counts as unknown. */
#define HEARTBEATS_FRESH 3

/* ---- telemetry ---- */

/* A device that was slow in the last epoch counts as slow in this one until a measurement says
 * otherwise. */
static void pace_take_over(struct state *state, const struct job *job, struct pace *pace)
{
    if (pace->epoch == job->epoch && pace->count == job_trainers(job))
        return;
    for (size_t i = 0; i < job_trainers(job); i++)
        if (conditions_is_slow(state, &job->ranks[i].device))
            pace_begin(pace, job->epoch, job_trainers(job), i);
}

static void pace_tell(struct state *state, const struct job *job, size_t rank, bool slow,
                      double factor)
{
    const struct device_ref *device = &job->ranks[rank].device;
    json_t *json = json_pack("{s:I, s:I, s:f}", "rank", (json_int_t)rank, "device",
                             (json_int_t)device->index, "factor", factor);
    history_tell(state, slow ? "node-slow" : "node-recovered-speed", job->id, device->worker, json,
                 slow ? "%s: rank %zu on %s/%u takes %.1f times as long to compute as its "
                        "profile predicts, relative to the other ranks"
                      : "%s: rank %zu on %s/%u computes as fast as the other ranks again (%.1f)",
                 job->id, rank, device->worker, device->index, factor);
}

static void report_pace(struct state *state, const struct job *job, size_t rank, double measured_s,
                        double predicted_s)
{
    struct dossier *dossier = dossier_find(state, job->id);
    const struct device_ref *device = &job->ranks[rank].device;
    struct pace_found found;
    if (job->state != JOB_RUNNING || rank >= job_trainers(job))
        return;
    pace_take_over(state, job, &dossier->pace);
    enum pace_news news = pace_hear(&dossier->pace, job->epoch, job_trainers(job), rank, measured_s,
                                    predicted_s, state_now_ms(state), &found);
    if (news == PACE_NOTHING)
        return;
    bool slow = news == PACE_HAS_SLOWED, known = conditions_slowdown(state, device) > 1;
    pace_tell(state, job, rank, slow, found.factor);
    conditions_set_slowdown(state, device, slow ? round(found.factor * 10) / 10 : 1);
    ahead_forget_spares(state);
    if (job->replans && !job->given[0] && (slow ? found.drifted : known))
        ahead_plan_again(state, job);
}

static void link_tell(struct state *state, const struct job *job, const Gimbal__LinkRecord *record)
{
    const char *own = job->ranks[record->rank].device.worker,
               *peer = job->ranks[record->peer].device.worker;
    char latency[32];
    json_t *json = json_pack("{s:s, s:s, s:s, s:f, s:f}", "node", own, "peer", peer, "memory",
                             record->in_devices ? "device" : "host", "latency_s", record->latency_s,
                             "seconds_per_byte", record->seconds_per_byte);
    history_tell(state, "link-measured", job->id, own, json,
                 "%s: between %s%s and %s %.3g GB/s, %s a message, measured by its ranks", job->id,
                 record->in_devices ? "devices of " : "", own, peer,
                 1e-9 / record->seconds_per_byte,
                 units_print_seconds(latency, sizeof latency, record->latency_s));
}

static int report_link(struct state *state, struct rpc_call *call, const Gimbal__LinkRecord *record,
                       struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    const char *own = conditions_host(state, job, record->rank);
    const char *peer =
        record->peer < job->rank_count ? conditions_host(state, job, record->peer) : NULL;
    if (!own || !peer || strcmp(own, peer) == 0 || !(record->latency_s >= 0) ||
        !(record->seconds_per_byte > 0) || !isfinite(record->latency_s + record->seconds_per_byte))
        return error_set(err, -EINVAL, "rank %u of %s does not report a link between two hosts",
                         record->rank, record->job);
    const struct hardware_link link = {record->latency_s, record->seconds_per_byte};
    enum hardware_kind kind =
        record->in_devices ? conditions_kind(state, job, record->rank) : HARDWARE_CPU;
    conditions_keep_link(state, own, peer, kind, &link);
    link_tell(state, job, record);
    ahead_forget_spares(state);
    dossier_find(state, job->id)->links_due = true;
    return 0;
}

static int report_trace(struct state *state, struct rpc_call *call,
                        const Gimbal__TraceRecord *record, struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    if (record->n_begin_ns != record->n_end_ns)
        return error_set(err, -EINVAL, "a trace has %zu begins and %zu ends", record->n_begin_ns,
                         record->n_end_ns);
    const struct trace_record trace = {
        .epoch = job->epoch,
        .step = record->step,
        .rank = record->rank,
        .rank_count = job->rank_count,
        .unix_ns = record->unix_ns,
        .total = record->total,
        .count = record->count,
        .first = record->first,
        .begin_ns = record->begin_ns,
        .end_ns = record->end_ns,
        .here = record->n_begin_ns,
    };
    return telemetry_trace(state->telemetry, job->id, &trace, err);
}

/* If too many steps in a row have changed nothing, the job goes back to its checkpoint, or fails.
 * If it has gone back before and the first step after the checkpoint was not finite again, it goes
 * back to an older one. */
static void report_go_back(struct state *state, const struct job *job)
{
    const struct job_config *config = dossier_find(state, job->id)->config;
    uint64_t most = config ? (uint64_t)config->elastic.max_skipped : 0;
    if (most == 0 || job->skipped < most)
        return;
    bool tried = job->checkpoint_epoch < job->epoch && job->began_step == job->checkpoint_step &&
                 job->skipped_from == job->began_step + 1;
    struct job_event event = {.kind = JOB_EVENT_NOT_FINITE, .job = job->id, .epoch = job->epoch};
    if (state_apply(state, &event, NULL) == 0 && tried)
        checkpoints_damage(state, job, job->checkpoint_step, "no step after it is finite");
}

/* Turn what is known into the job's progress. A job that has ended keeps its record, but the last
 * steps before a pause may be heard of after it. Ranks are not all heard at once: a report of a
 * step that other ranks have passed is no news; nor is one of a step that the job, by its
 * checkpoint, is known to have passed, because its loss is that of another step. */
static void report_progress(struct state *state, const struct job *job,
                            const Gimbal__StepRecord *record)
{
    const struct steps *steps = &telemetry_find(state->telemetry, job->id)->steps;
    const struct step_point *last = steps_last(steps);
    bool runs = job->state == JOB_RUNNING || job->state == JOB_PAUSING || job->state == JOB_PAUSED;
    if (!last || !runs || record->step < last->step || last->step < job->step)
        return;
    struct job_event event = {.kind = JOB_EVENT_PROGRESS, .job = job->id, .epoch = job->epoch};
    event.progress.step = last->step;
    event.progress.loss = last->loss;
    event.progress.tokens_per_s = steps_tokens_per_s(steps);
    event.progress.tokens = last->tokens;
    event.progress.time_s = last->time_s;
    event.progress.skipped = record->skipped;
    if (state_apply(state, &event, NULL) < 0)
        return;
    history_tell_replan(state, job);
    ahead_weigh_links(state, job);
    ahead_begin_spares(state, job);
    history_tell_step(state, job);
    report_go_back(state, job);
}

/* A step that was heard of late, from a rank that was lost meanwhile or whose epoch is over. If it
 * belongs to what the job went on from, its curve would otherwise have a hole; there it tells
 * nothing but its loss and its time. */
static int report_find_past(const struct state *state, const Gimbal__StepRecord *record,
                            const struct job **out, struct error *err)
{
    const struct job *job = jobs_find(state->jobs, record->job);
    if (!job || record->epoch == 0 || record->epoch > job->epoch || record->step > job->step)
        return error_set(err, -ESTALE,
                         "step %" PRIu64 " of %.64s, epoch %" PRIu64
                         ", is none of what the job has done",
                         record->step, record->job, record->epoch);
    *out = job;
    return 0;
}

static int report_step(struct state *state, struct rpc_call *call, const Gimbal__StepRecord *record,
                       struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, record->job, record->epoch, &record->rank, &job, err);
    bool late = rc == -ESTALE;
    if (late)
        rc = report_find_past(state, record, &job, err);
    if (rc < 0)
        return rc;
    const struct job_config *config = dossier_find(state, job->id)->config;
    struct step_record step = {
        .epoch = (uint32_t)record->epoch,
        .step = record->step,
        .loss = record->loss,
        .gradient_norm = record->gradient_norm,
        /* The number is unknown if the job's file is no longer understood. */
        .tokens = config ? (uint64_t)(config->train.global_batch * config->model.seq) : 0,
        .time_s = record->seconds,
        .end_ms = state_now_ms(state),
    };
    curves_whole(state, job);
    rc = telemetry_step(state->telemetry, job->id, &step, err);
    if (rc == 0 && !late)
        report_progress(state, job, record);
    return rc;
}

static int report_instruction(struct state *state, struct rpc_call *call,
                              const Gimbal__InstructionRecord *record, struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    const struct instruction_record instruction = {
        .block = record->block_type,
        .class = record->instruction,
        .count = record->count,
        .predicted_s = record->predicted_seconds,
        .measured_s = record->seconds,
    };
    if (record->predicted_seconds > 0)
        report_pace(state, job, record->rank, record->seconds, record->predicted_seconds);
    curves_whole(state, job);
    return telemetry_instructions(state->telemetry, job->id, job->epoch, &instruction, 1, err);
}

static int report_line(struct state *state, struct rpc_call *call, const Gimbal__LogLine *line,
                       struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, line->job, line->epoch, &line->rank, &job, err);
    if (rc < 0)
        return rc;
    const struct log_line said = {.rank = (int)line->rank,
                                  .epoch = line->epoch,
                                  .time_ms = line->unix_us / 1000,
                                  .level = line->level,
                                  .text = line->text};
    telemetry_line(state->telemetry, job->id, &said);
    return 0;
}

static int report_evaluation(struct state *state, struct rpc_call *call,
                             const Gimbal__EvaluationRecord *record, struct error *err)
{
    const struct job *job;
    int rc = door_find_rank(state, call, record->job, record->epoch, NULL, &job, err);
    if (rc < 0)
        return rc;
    curves_whole(state, job);
    if (record->targets > 0 && record->step >= job->steps &&
        history_knows_evaluation(state, job, record->step))
        return 0; /* another rank was faster to say it: see history_tell_last() */
    const struct evaluation_record evaluation = {
        .step = record->step,
        .loss = record->loss,
        .targets = record->targets,
        .text = record->text.data,
        .text_size = record->text.len,
    };
    telemetry_evaluation(state->telemetry, job->id, &evaluation);
    if (!job_ended(job)) /* nobody follows it any more */
        history_tell_evaluation(state, record);
    return 0;
}

static int report_take(struct state *state, struct rpc_call *call,
                       const Gimbal__TelemetryRecord *record, struct error *err)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        return report_step(state, call, record->step, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION:
        return report_instruction(state, call, record->instruction, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_LOG:
        return report_line(state, call, record->log, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        return report_evaluation(state, call, record->evaluation, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_TRACE:
        return report_trace(state, call, record->trace, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_LINK:
        return report_link(state, call, record->link, err);
    default:
        return error_set(err, -EINVAL, "a record says nothing that is known here");
    }
}

static int report_unpack(const ProtobufCBinaryData *bytes, Gimbal__TelemetryRecord **out,
                         struct error *err)
{
    ProtobufCMessage *message;
    int rc = message_unpack(&gimbal__telemetry_record__descriptor, bytes->data, bytes->len,
                            message_quota(bytes->len), &message, err);
    if (rc == 0)
        *out = (Gimbal__TelemetryRecord *)message;
    return rc;
}

/* Records that are stale or make no sense are skipped: those after them are not to blame. */
static void report_push(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__PushBatch *batch = rpc_call_request(call);
    struct inbox *inbox =
        inboxes_get(service->inboxes, rpc_call_envelope(call)->client, batch->stream);
    struct error err;
    size_t skip;
    int rc = inbox_accept(inbox, batch->first_sequence, batch->n_records, &skip, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    for (size_t i = skip; i < batch->n_records; i++) {
        Gimbal__TelemetryRecord *record = NULL;
        rc = report_unpack(&batch->records[i], &record, &err);
        if (rc == 0)
            rc = report_take(service->state, call, record, &err);
        if (rc < 0)
            log_line(LOG_DEBUG, "telemetry of %s, record %" PRIu64 ": %s",
                     rpc_call_envelope(call)->caller, batch->first_sequence + i, err.text);
        if (record)
            message_free(&record->base);
    }
    turn_run(service->state);
    struct reporters *reporters = &service->reporters;
    reporters->items =
        grow(reporters->items, reporters->count, &reporters->capacity, sizeof *reporters->items);
    reporters->items[reporters->count++] = (struct reporter){call, inbox->acknowledged};
}

void reporters_answer(struct service *service)
{
    struct reporters *reporters = &service->reporters;
    if (!curves_keep(service->state))
        return;
    for (size_t i = 0; i < reporters->count; i++) {
        Gimbal__PushAck ack = GIMBAL__PUSH_ACK__INIT;
        ack.acknowledged = reporters->items[i].acknowledged;
        rpc_call_reply(reporters->items[i].call, &ack.base);
    }
    reporters->count = 0;
}

/* ---- positions ---- */

static struct stall_position position_from_wire(const Gimbal__RankPosition *message)
{
    struct stall_position position = {
        .known = true,
        .inside = message->inside,
        .exchanges = message->exchanges,
        .group = message->group,
        .number = message->number,
        .step = message->step,
        .awaits = (int)(message->awaits - 1),
        .held_ms = message->held_ms,
        .stopped = message->stopped,
        .stopped_ms = message->stopped_ms,
    };
    snprintf(position.call, sizeof position.call, "%s", message->call);
    size_t count = message->n_past_groups < message->n_past_numbers ? message->n_past_groups
                                                                    : message->n_past_numbers;
    for (size_t i = 0; i < count && i < STALL_PAST_MAX; i++) {
        position.past[i].group = message->past_groups[i];
        position.past[i].number = message->past_numbers[i];
        position.past_count++;
    }
    return position;
}

/* The longest that a rank may be in one place: as the job file says, but no less than some steps as
 * they were predicted and as they were measured. */
static uint64_t stall_limit_ms(const struct state *state, const struct job *job,
                               const struct dossier *dossier)
{
    const struct job_telemetry *measured = telemetry_find(state->telemetry, job->id);
    double limit_s = dossier->config->elastic.stall;
    double predicted_s = dossier->planning.plan ? dossier->planning.plan->predicted.step_time_s : 0;
    double measured_s = measured ? steps_time_median_s(&measured->steps) : 0;
    if (STEPS_HELD * predicted_s > limit_s)
        limit_s = STEPS_HELD * predicted_s;
    if (STEPS_HELD * measured_s > limit_s)
        limit_s = STEPS_HELD * measured_s;
    return (uint64_t)(limit_s * 1000);
}

static void stall_act(struct state *state, const struct job *job,
                      const struct stall_verdict *verdict)
{
    const struct device_ref *device = &job->ranks[verdict->rank].device;
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:f, s:s, s:I, s:I, s:b}", "verdict", stall_kind_name(verdict->kind),
        "rank", (json_int_t)verdict->rank, "waiting", (json_int_t)verdict->waiting, "held_s",
        (double)verdict->held_ms * 1e-3, "call", verdict->call, "number",
        (json_int_t)verdict->number, "step", (json_int_t)verdict->step, "ended", verdict->ends);
    history_tell(state, "rank-stalled", job->id, device->worker, json, "%s: rank %zu on %s/%u %s%s",
                 job->id, verdict->rank, device->worker, device->index, verdict->words,
                 verdict->ends ? "; its executor is ended" : "");
    if (verdict->ends)
        assignments_end(state->assignments, job, verdict->rank, verdict->words);
}

static void stall_check(struct state *state, const struct job *job)
{
    struct dossier *dossier = dossier_find(state, job->id);
    bool begins = job->state == JOB_STARTING;
    if (!dossier->config || (!begins && job->state != JOB_RUNNING && job->state != JOB_PAUSING))
        return;
    const struct stall_limits limits = {
        .held_ms = begins ? (uint64_t)(dossier->config->elastic.stall * 1000)
                          : stall_limit_ms(state, job, dossier),
        .fresh_ms = HEARTBEATS_FRESH * state->options.membership.heartbeat_ms,
    };
    struct stall_verdict verdict;
    if (stalls_judge(&dossier->stalls, &limits, begins, state_now_ms(state), &verdict))
        stall_act(state, job, &verdict);
}

void reports_hear_positions(struct state *state, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request)
{
    for (size_t i = 0; i < request->n_ranks; i++) {
        const Gimbal__RankState *told = request->ranks[i];
        const struct job *job;
        struct error err;
        if (door_find_rank(state, call, told->job, told->epoch, &told->rank, &job, &err) < 0)
            continue; /* of an epoch that is over */
        struct dossier *dossier = dossier_find(state, job->id);
        struct stall_position position;
        if (told->position)
            position = position_from_wire(told->position);
        stalls_hear(&dossier->stalls, job->epoch, job->rank_count, told->rank,
                    told->position ? &position : NULL, state_now_ms(state));
        if (told->position)
            stall_check(state, job);
    }
}

const struct service_handler report_handlers[] = {
    {COORDINATOR_PUSH_TELEMETRY, report_push},
    {0, NULL},
};
