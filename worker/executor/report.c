/* report.c - what ranks report: begun, ready, paused, checkpoint staged, stopped; and what they
 * measure, as telemetry records. */
#include "worker/executor/session.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/message/message.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_WORTH_TELLING_S 0.1 /* for the previous checkpoint */
#define TRACE_PART 4096          /* instructions per record */

static void send_ready(struct session *session, int rank, uint64_t program_hash)
{
    const struct data_file *files;
    const struct session_state state = session_state(session);
    const struct beginning *beginning = &state.beginning;
    size_t count = session_files(session, &files);
    Gimbal__DataFile *wire = xcalloc(count, sizeof *wire);
    Gimbal__DataFile **pointers = xcalloc(count, sizeof(Gimbal__DataFile *));
    for (size_t i = 0; i < count; i++) {
        gimbal__data_file__init(&wire[i]);
        wire[i].path = xstrdup(files[i].path);
        text_mend(wire[i].path); /* a file name need not be valid UTF-8 */
        wire[i].size = files[i].size;
        wire[i].hash = files[i].hash;
        pointers[i] = &wire[i];
    }
    Gimbal__ReadyRequest ready = GIMBAL__READY_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    ready.job = session_job(session);
    ready.epoch = session_epoch(session);
    ready.rank = (uint32_t)rank;
    ready.program_hash = program_hash;
    ready.step = state.steps;
    ready.files = pointers;
    ready.n_files = count;
    ready.from_memory = beginning->source == MOVE_MEMORY;
    ready.bytes_arrived = beginning->bytes_arrived;
    ready.prepare_s = beginning->prepare_s;
    ready.fill_s = beginning->fill_s;
    ready.inherited = beginning->inherited;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    event.ready = &ready;
    session_send(session, &event);
    for (size_t i = 0; i < count; i++)
        free(wire[i].path);
    free(pointers);
    free(wire);
}

static void report_begun(void *context, int rank, const struct beginning *beginning)
{
    static const char *const sources[] = {
        [MOVE_FRESH] = "its first weights", [MOVE_DISK] = "a checkpoint", [MOVE_MEMORY] = "memory"};
    char bytes[32];
    session_begins(context, beginning);
    if (rank == 0)
        scalars_begin(session_scalars(context), beginning->step, sources[beginning->source]);
    if (beginning->bytes_copied > 0)
        log_line(
            LOG_INFO,
            "rank %d keeps %s of host memory for copies of state, as the plan leaves some state on "
            "a single node",
            rank, units_print_bytes(bytes, sizeof bytes, (double)beginning->bytes_copied));
    if (beginning->source == MOVE_MEMORY)
        log_line(LOG_INFO,
                 "rank %d continues after step %llu from memory, %s of it from other ranks, in "
                 "%.0f ms",
                 rank, (unsigned long long)beginning->step,
                 units_print_bytes(bytes, sizeof bytes, (double)beginning->bytes_arrived),
                 beginning->fill_s * 1e3);
}

static void send_telemetry(struct session *session, Gimbal__TelemetryRecord *record)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = record;
    session_send(session, &event);
}

static void send_step(struct session *session, int rank, const struct step_found *found)
{
    Gimbal__StepRecord record = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    record.job = session_job(session);
    record.epoch = found->epoch;
    record.rank = (uint32_t)rank;
    record.step = found->step;
    record.loss = found->result.loss;
    record.gradient_norm = found->result.norm;
    record.skipped = found->result.skipped;
    record.seconds = found->seconds;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    telemetry.step = &record;
    send_telemetry(session, &telemetry);
}

/* Rank 0 may have been lost with what it had not delivered of the newest steps. */
static void send_past(struct session *session, int rank, bool of_this_epoch, uint64_t step)
{
    struct step_found found[SESSION_PAST];
    size_t count = session_past(session, of_this_epoch, step, found);
    for (size_t i = 0; i < count; i++)
        send_step(session, rank, &found[i]);
}

static int report_ready(void *context, int rank, uint64_t program_hash, struct error *err)
{
    (void)err;
    send_ready(context, rank, program_hash);
    return 0;
}

static int report_ready_and_wait(void *context, int rank, uint64_t program_hash, struct error *err)
{
    send_ready(context, rank, program_hash);
    int rc = session_wait_go(context, err);
    if (rc == 0) /* by then it is known after which step this epoch begins */
        send_past(context, rank, false, session_state(context).beginning.step);
    return rc;
}

static bool wants_pause(void *context, uint64_t pauses)
{
    return session_state(context).pauses > pauses;
}

static bool wants_stop(void *context)
{
    return session_state(context).wants_stop;
}

static bool is_over(void *context)
{
    return session_state(context).over;
}

static int report_paused(void *context, int rank, uint64_t step, uint64_t number, struct error *err)
{
    struct session *session = context;
    Gimbal__PausedRequest paused = GIMBAL__PAUSED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    paused.job = session_job(session);
    paused.epoch = session_epoch(session);
    paused.rank = (uint32_t)rank;
    paused.number = number;
    paused.step = step;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PAUSED;
    event.paused = &paused;
    session_send(session, &event);
    return session_wait_resumed(session, number, err);
}

/* Called for rank 0 only, which alone knows the whole checkpoint. Failures, and waits of a step,
 * are logged here as well. */
void session_tell_staged(struct session *session, const struct saver_report *report)
{
    Gimbal__StagedRequest staged = GIMBAL__STAGED_REQUEST__INIT;
    char failure[ERROR_SIZE];
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    staged.job = session_job(session);
    staged.epoch = session_epoch(session);
    staged.step = report->step;
    staged.bytes = report->bytes;
    staged.shards = (uint32_t)report->shards;
    snprintf(failure, sizeof failure, "%s", report->failure ? report->failure : "");
    text_mend(failure); /* it may have been cut, or contain a file name */
    staged.failure = failure;
    staged.no_space = report->no_space;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STAGED;
    event.staged = &staged;
    if (report->failure)
        log_line(LOG_WARN, "no checkpoint of step %llu: %s; %s", (unsigned long long)report->step,
                 report->failure,
                 report->last ? "it is the last one, and is tried again" : "training continues");
    if (report->waited_s > WAIT_WORTH_TELLING_S)
        log_line(LOG_WARN,
                 "after step %llu training waited %.1f s for the previous checkpoint: "
                 "checkpoint.every is too small for this disk",
                 (unsigned long long)report->step, report->waited_s);
    session_send(session, &event);
}

void session_complain(void *session, const char *words)
{
    (void)session;
    log_line(LOG_WARN, "%s", words);
}

static void report_reserved(void *context, int rank, uint64_t bytes)
{
    char size[32];
    (void)context;
    if (bytes == 0)
        return;
    log_line(LOG_INFO, "rank %d keeps %s of host memory for copies of checkpoints", rank,
             units_print_bytes(size, sizeof size, (double)bytes));
}

/* All ranks know the loss; rank 0 reports it. */
static void telemetry_step(void *context, int rank, uint64_t number,
                           const struct step_result *result, double seconds)
{
    struct session *session = context;
    const struct step_found found = {session_epoch(session), number, *result, seconds};
    session_stepped(session, number);
    session_found(session, &found);
    if (rank != 0)
        return;
    if (result->skipped)
        log_line(LOG_WARN,
                 "step %llu: loss %g, norm of the gradient %g: not finite, nothing was updated",
                 (unsigned long long)number, result->loss, result->norm);
    scalars_step(session_scalars(session), number, result->loss, result->norm, seconds);
    send_step(session, rank, &found);
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

static void telemetry_evaluation(void *context, int rank, uint64_t number, double loss,
                                 double targets)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    record.step = number;
    record.loss = loss;
    record.targets = (uint64_t)targets;
    session_evaluated(context, loss, targets);
    if (rank != 0)
        return;
    scalars_evaluation(session_scalars(context), number, loss);
    evaluation_record(context, &record);
}

static void telemetry_sample(void *context, int rank, uint64_t number, const uint8_t *text,
                             size_t size)
{
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    if (rank == 0)
        scalars_sample(session_scalars(context), number, text, size);
    record.step = number;
    record.text = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)text};
    evaluation_record(context, &record);
}

static void telemetry_times(void *context, int rank, const char *block_type,
                            const char *instruction, uint64_t steps, double seconds,
                            double predicted_s)
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

static uint64_t telemetry_clock_ns(clockid_t clock)
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

void session_tell_link(void *context, int rank, int peer, bool in_devices,
                       const struct hardware_link *link)
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
static void telemetry_trace(void *context, int rank, uint64_t number, const struct stamp *stamps,
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
    record.unix_ns = telemetry_clock_ns(CLOCK_REALTIME) -
                     (telemetry_clock_ns(CLOCK_MONOTONIC) - (uint64_t)(begin_s * 1e9));
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

struct reporter session_reporter(struct session *session, bool wait)
{
    return (struct reporter){
        .context = session,
        .begun = report_begun,
        .ready = wait ? report_ready_and_wait : report_ready,
        .wants_pause = wants_pause,
        .wants_stop = wants_stop,
        .is_over = is_over,
        .paused = report_paused,
        .reserved = report_reserved,
        .step = telemetry_step,
        .evaluation = telemetry_evaluation,
        .times = telemetry_times,
        .sample = telemetry_sample,
        .trace = telemetry_trace,
    };
}

/* -ENOMEM means memory of the rank's device, -ENOBUFS memory of its host. A process that was both
 * terminated and cancelled was terminated first, and most likely cancelled because of that. */
static Gimbal__StoppedRequest__Cause cause_of(const struct session_state *state, int rc)
{
    bool by_peer = rc == -ECONNRESET || rc == -ECANCELED || rc == -ETIMEDOUT;
    return rc == 0                  ? GIMBAL__STOPPED_REQUEST__CAUSE__DONE
           : state->quiesced        ? GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED
           : rc == -ENOTRECOVERABLE ? GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED
           : state->terminated      ? GIMBAL__STOPPED_REQUEST__CAUSE__FAULT
           : state->cancelled       ? GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED
           : by_peer                ? GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST
           : rc == -EBADMSG         ? GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED
           : rc == -ENOMEM          ? GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY
           : rc == -ENOBUFS         ? GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY
           : rc == -ENODATA         ? GIMBAL__STOPPED_REQUEST__CAUSE__DATA
           : rc == -EDOM            ? GIMBAL__STOPPED_REQUEST__CAUSE__NOT_FINITE
                                    : GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
}

void session_stopped(struct session *session, int rank, const struct rank_end *end)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    Gimbal__LastStep last = GIMBAL__LAST_STEP__INIT;
    const struct session_state state = session_state(session);
    struct error why = {""};
    if (end->rc < 0)
        error_set(&why, end->rc, "%s%s", state.terminated ? "SIGTERM: " : "", end->err->text);
    text_mend(why.text); /* it may contain a file name */
    stopped.job = session_job(session);
    stopped.epoch = session_epoch(session);
    stopped.rank = (uint32_t)rank;
    stopped.step = state.steps;
    stopped.cause = cause_of(&state, end->rc);
    stopped.reason = why.text;
    stopped.keeps = end->keeps;
    last.loss = state.loss;
    last.held_out_loss = state.held_out_loss;
    last.held_out_targets = (uint64_t)state.held_out_targets;
    stopped.last = end->rc == 0 && end->finished ? &last : NULL;
    if (end->rc == 0 && rank == 1)
        send_past(session, rank, true, state.steps);
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    session_send(session, &event);
}
