/* telemetry.c - takes what ranks measure from the wire to telemetry, and from there to the job. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/log.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <inttypes.h>

/* If too many steps in a row have changed nothing, the job goes back to its checkpoint, or fails.
 * If it has gone back before and the first step after the checkpoint was not finite again, it goes
 * back to an older one. */
static void go_back(struct service *service, const struct job *job)
{
    const struct job_config *config = dossier_find(service, job->id)->config;
    uint64_t most = config ? (uint64_t)config->elastic.max_skipped : 0;
    if (most == 0 || job->skipped < most)
        return;
    bool tried = job->checkpoint_epoch < job->epoch && job->began_step == job->checkpoint_step &&
                 job->skipped_from == job->began_step + 1;
    struct job_event event = {.kind = JOB_EVENT_NOT_FINITE, .job = job->id, .epoch = job->epoch};
    if (service_apply(service, &event, NULL) == 0 && tried)
        service_damage_checkpoint(service, job, job->checkpoint_step, "no step after it is finite");
}

/* Turn what is known into the job's progress. A job that has ended keeps its record, but the last
 * steps before a pause may be heard of after it. Ranks are not all heard at once: a report of a
 * step that other ranks have passed is no news; nor is one of a step that the job, by its
 * checkpoint, is known to have passed, because its loss is that of another step. */
static void progress(struct service *service, const struct job *job,
                     const Gimbal__StepRecord *record)
{
    const struct steps *steps = &telemetry_find(service->telemetry, job->id)->steps;
    const struct step_point *last = steps_last(steps);
    bool runs = job->state == JOB_RUNNING || job->state == JOB_PAUSING || job->state == JOB_PAUSED;
    if (!last || !runs || record->step < last->step || last->step < job->step)
        return;
    struct job_event event = {.kind = JOB_EVENT_PROGRESS, .job = job->id, .epoch = job->epoch};
    event.progress.step = last->step;
    event.progress.loss = last->loss;
    event.progress.tokens_per_s = steps_tokens_per_s(steps);
    event.progress.skipped = record->skipped;
    if (service_apply(service, &event, NULL) < 0)
        return;
    service_tell_replan(service, job);
    service_weigh_links(service, job);
    service_begin_spares(service, job);
    service_tell_step(service, job);
    go_back(service, job);
}

static int take_step(struct service *service, struct rpc_call *call,
                     const Gimbal__StepRecord *record, struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    const struct job_config *config = dossier_find(service, job->id)->config;
    struct step_record step = {
        .epoch = job->epoch,
        .step = record->step,
        .loss = record->loss,
        /* The number is unknown if the job's file is no longer understood. */
        .tokens = config ? (uint64_t)(config->train.global_batch * config->model.seq) : 0,
        .time_s = record->seconds,
        .end_ms = service_now_ms(service),
    };
    rc = telemetry_step(service->telemetry, job->id, &step, err);
    if (rc == 0)
        progress(service, job, record);
    return rc;
}

static int take_instruction(struct service *service, struct rpc_call *call,
                            const Gimbal__InstructionRecord *record, struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, record->job, record->epoch, &record->rank, &job, err);
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
        service_hear_pace(service, job, record->rank, record->seconds, record->predicted_seconds);
    return telemetry_instructions(service->telemetry, job->id, job->epoch, &instruction, 1, err);
}

static int take_line(struct service *service, struct rpc_call *call, const Gimbal__LogLine *line,
                     struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, line->job, line->epoch, &line->rank, &job, err);
    if (rc < 0)
        return rc;
    const struct log_line said = {.rank = (int)line->rank,
                                  .epoch = line->epoch,
                                  .time_ms = line->unix_us / 1000,
                                  .level = line->level,
                                  .text = line->text};
    telemetry_line(service->telemetry, job->id, &said);
    return 0;
}

static int take_evaluation(struct service *service, struct rpc_call *call,
                           const Gimbal__EvaluationRecord *record, struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, record->job, record->epoch, NULL, &job, err);
    if (rc < 0)
        return rc;
    const struct evaluation_record evaluation = {
        .step = record->step,
        .loss = record->loss,
        .targets = record->targets,
        .text = record->text.data,
        .text_size = record->text.len,
    };
    telemetry_evaluation(service->telemetry, job->id, &evaluation);
    service_tell_evaluation(service, record);
    return 0;
}

static int take_record(struct service *service, struct rpc_call *call,
                       const Gimbal__TelemetryRecord *record, struct error *err)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        return take_step(service, call, record->step, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION:
        return take_instruction(service, call, record->instruction, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_LOG:
        return take_line(service, call, record->log, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        return take_evaluation(service, call, record->evaluation, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_TRACE:
        return service_take_trace(service, call, record->trace, err);
    case GIMBAL__TELEMETRY_RECORD__RECORD_LINK:
        return service_hear_link(service, call, record->link, err);
    default:
        return error_set(err, -EINVAL, "a record says nothing that is known here");
    }
}

static int unpack_record(const ProtobufCBinaryData *bytes, Gimbal__TelemetryRecord **out,
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
static void push_telemetry(struct rpc_call *call, void *data)
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
        rc = unpack_record(&batch->records[i], &record, &err);
        if (rc == 0)
            rc = take_record(service, call, record, &err);
        if (rc < 0)
            log_line(LOG_DEBUG, "telemetry of %s, record %" PRIu64 ": %s",
                     rpc_call_envelope(call)->caller, batch->first_sequence + i, err.text);
        if (record)
            message_free(&record->base);
    }
    service_turn(service);
    Gimbal__PushAck ack = GIMBAL__PUSH_ACK__INIT;
    ack.acknowledged = inbox->acknowledged;
    rpc_call_reply(call, &ack.base);
}

const struct service_handler telemetry_handlers[] = {
    {COORDINATOR_PUSH_TELEMETRY, push_telemetry},
    {0, NULL},
};
