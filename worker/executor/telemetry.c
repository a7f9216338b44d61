/* telemetry.c - turns measurements into telemetry records. */
#include "worker/executor/telemetry.h"

#include "common/base/log.h"
#include "worker/executor/session/session.h"

#include <math.h>
#include <time.h>

#define TRACE_PART 4096 /* instructions per record */

static void send_telemetry(struct session *session, Gimbal__TelemetryRecord *record)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = record;
    session_send(session, &event);
}

/* All ranks know the loss; rank 0 reports it. */
void telemetry_step(void *context, int rank, uint64_t number, const struct step_result *result,
                    double seconds)
{
    struct session *session = context;
    Gimbal__StepRecord record = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    session_stepped(session, number);
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

void telemetry_evaluation(void *context, int rank, uint64_t number, double loss, double targets)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    record.step = number;
    record.loss = loss;
    record.targets = (uint64_t)targets;
    if (rank == 0)
        evaluation_record(context, &record);
}

void telemetry_sample(void *context, int rank, uint64_t number, const uint8_t *text, size_t size)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    (void)rank;
    record.step = number;
    record.text = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)text};
    evaluation_record(context, &record);
}

void telemetry_times(void *context, int rank, const char *block_type, const char *instruction,
                     uint64_t steps, double seconds, double predicted_s)
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
    record.predicted_seconds = predicted_s;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION;
    telemetry.instruction = &record;
    send_telemetry(session, &telemetry);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Stamps are in order per queue, and either queue may be the first to begin. */
static double earliest(const struct stamp *stamps, size_t count)
{
    double begin_s = count > 0 ? stamps[0].begin_s : 0;
    for (size_t i = 1; i < count; i++)
        begin_s = fmin(begin_s, stamps[i].begin_s);
    return begin_s;
}

void telemetry_link(void *context, int rank, int peer, bool in_devices,
                    const struct profile_link *link)
{
    Gimbal__LinkRecord record = GIMBAL__LINK_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    record.job = session_job(context);
    record.epoch = session_epoch(context);
    record.rank = (uint32_t)rank;
    record.peer = (uint32_t)peer;
    record.latency_s = link->latency_s;
    record.seconds_per_byte = link->seconds_per_byte;
    record.in_devices = in_devices;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_LINK;
    telemetry.link = &record;
    send_telemetry(context, &telemetry);
}

/* Sent in several records, each small compared with what telemetry accepts at once. */
void telemetry_trace(void *context, int rank, uint64_t number, const struct stamp *stamps,
                     size_t count, size_t total)
{
    uint64_t begin_ns[TRACE_PART], end_ns[TRACE_PART];
    double begin_s = earliest(stamps, count);
    Gimbal__TraceRecord record = GIMBAL__TRACE_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    record.job = session_job(context);
    record.epoch = session_epoch(context);
    record.rank = (uint32_t)rank;
    record.step = number;
    record.unix_ns =
        clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - (uint64_t)(begin_s * 1e9));
    record.total = total;
    record.count = count;
    record.begin_ns = begin_ns;
    record.end_ns = end_ns;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_TRACE;
    telemetry.trace = &record;
    for (size_t first = 0; first < count; first += record.n_begin_ns) {
        record.first = first;
        record.n_begin_ns = count - first < TRACE_PART ? count - first : TRACE_PART;
        record.n_end_ns = record.n_begin_ns;
        for (size_t i = 0; i < record.n_begin_ns; i++) {
            begin_ns[i] = (uint64_t)((stamps[first + i].begin_s - begin_s) * 1e9);
            end_ns[i] = (uint64_t)((stamps[first + i].end_s - begin_s) * 1e9);
        }
        send_telemetry(context, &telemetry);
    }
}
