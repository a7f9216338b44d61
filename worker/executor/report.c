/* report.c - what ranks tell through a session, as events of the channel. */
#include "worker/executor/session.h"

#include "common/base/log.h"

#include <errno.h>

static int report_ready(struct session *session, int rank, uint64_t program_hash)
{
    Gimbal__ReadyRequest ready = GIMBAL__READY_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    ready.job = session_job(session);
    ready.epoch = session_epoch(session);
    ready.rank = (uint32_t)rank;
    ready.program_hash = program_hash;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    event.ready = &ready;
    session_send(session, &event);
    return 0;
}

static int ready(void *context, int rank, uint64_t program_hash, struct error *err)
{
    (void)err;
    return report_ready(context, rank, program_hash);
}

static int ready_and_wait(void *context, int rank, uint64_t program_hash, struct error *err)
{
    report_ready(context, rank, program_hash);
    return session_wait_go(context, err);
}

static void send_telemetry(struct session *session, Gimbal__TelemetryRecord *record)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = record;
    session_send(session, &event);
}

/* All ranks know the loss; the first one tells it. */
static void step(void *context, int rank, uint64_t number, const struct step_result *result,
                 double seconds)
{
    struct session *session = context;
    Gimbal__StepRecord record = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    if (rank != 0)
        return;
    if (result->skipped)
        log_line(LOG_WARN,
                 "step %llu: loss %g, norm of the gradient %g: not finite, nothing was updated",
                 (unsigned long long)number, result->loss, result->norm);
    record.job = session_job(session);
    record.epoch = session_epoch(session);
    record.step = number;
    record.loss = result->loss;
    record.gradient_norm = result->norm;
    record.skipped = result->skipped;
    record.seconds = seconds;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    telemetry.step = &record;
    send_telemetry(session, &telemetry);
}

static void evaluation_record(struct session *session, Gimbal__EvaluationRecord *record)
{
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    record->job = session_job(session);
    record->epoch = session_epoch(session);
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION;
    telemetry.evaluation = record;
    send_telemetry(session, &telemetry);
}

static void evaluation(void *context, int rank, uint64_t number, double loss, double targets)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    record.step = number;
    record.loss = loss;
    record.targets = (uint64_t)targets;
    if (rank == 0)
        evaluation_record(context, &record);
}

static void sample(void *context, int rank, uint64_t number, const uint8_t *text, size_t size)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    (void)rank;
    record.step = number;
    record.text = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)text};
    evaluation_record(context, &record);
}

static void times(void *context, int rank, const char *block_type, const char *instruction,
                  uint64_t steps, double seconds)
{
    struct session *session = context;
    Gimbal__InstructionRecord record = GIMBAL__INSTRUCTION_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    record.job = session_job(session);
    record.epoch = session_epoch(session);
    record.rank = (uint32_t)rank;
    record.block_type = (char *)block_type;
    record.instruction = (char *)instruction;
    record.count = steps;
    record.seconds = seconds;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION;
    telemetry.instruction = &record;
    send_telemetry(session, &telemetry);
}

struct reporter session_reporter(struct session *session, bool wait)
{
    return (struct reporter){session, wait ? ready_and_wait : ready, step, evaluation, times,
                             sample};
}

void session_stopped(struct session *session, int rank, int rc, const struct error *err)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    stopped.job = session_job(session);
    stopped.epoch = session_epoch(session);
    stopped.rank = (uint32_t)rank;
    bool by_peer = rc == -ECONNRESET || rc == -ECANCELED || rc == -ETIMEDOUT;
    stopped.cause = rc == 0                      ? GIMBAL__STOPPED_REQUEST__CAUSE__DONE
                    : session_cancelled(session) ? GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED
                    : by_peer                    ? GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST
                                                 : GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
    stopped.reason = (char *)(rc < 0 ? err->text : "");
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    session_send(session, &event);
}
