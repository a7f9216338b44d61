/* report.c - what ranks report about themselves: begun, ready, paused, checkpoint staged, stopped.
 * What they measure is in telemetry.c. */
#include "worker/executor/session/session.h"
#include "worker/executor/telemetry.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_WORTH_TELLING_S 0.1 /* for the previous checkpoint */

static int report_ready(struct session *session, int rank, uint64_t program_hash)
{
    const struct data_file *files;
    const struct beginning beginning = session_beginning(session);
    size_t count = session_files(session, &files);
    Gimbal__DataFile *wire = xcalloc(count, sizeof *wire);
    Gimbal__DataFile **pointers = xcalloc(count, sizeof(Gimbal__DataFile *));
    for (size_t i = 0; i < count; i++) {
        gimbal__data_file__init(&wire[i]);
        wire[i].path = xstrdup(files[i].path);
        message_mend_text(wire[i].path); /* a file name need not be valid UTF-8 */
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
    ready.step = session_steps(session);
    ready.files = pointers;
    ready.n_files = count;
    ready.from_memory = beginning.source == MOVE_MEMORY;
    ready.bytes_arrived = beginning.bytes_arrived;
    ready.prepare_s = beginning.prepare_s;
    ready.fill_s = beginning.fill_s;
    ready.inherited = beginning.inherited;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    event.ready = &ready;
    session_send(session, &event);
    for (size_t i = 0; i < count; i++)
        free(wire[i].path);
    free(pointers);
    free(wire);
    return 0;
}

static void begun(void *context, int rank, const struct beginning *beginning)
{
    char bytes[32];
    session_begins(context, beginning);
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

static bool wants_pause(void *context, uint64_t pauses)
{
    return session_wants_pause(context, pauses);
}

static bool wants_stop(void *context)
{
    return session_wants_stop(context);
}

static bool is_over(void *context)
{
    return session_ended(context);
}

static int paused(void *context, int rank, uint64_t step, uint64_t number, struct error *err)
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
    message_mend_text(failure); /* it may have been cut, or contain a file name */
    staged.failure = failure;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STAGED;
    event.staged = &staged;
    if (report->failure)
        log_line(LOG_WARN, "no checkpoint of step %llu: %s; training continues",
                 (unsigned long long)report->step, report->failure);
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

static void reserved(void *context, int rank, uint64_t bytes)
{
    char size[32];
    (void)context;
    if (bytes == 0)
        return;
    log_line(LOG_INFO, "rank %d keeps %s of host memory for copies of checkpoints", rank,
             units_print_bytes(size, sizeof size, (double)bytes));
}

struct reporter session_reporter(struct session *session, bool wait)
{
    return (struct reporter){
        .context = session,
        .begun = begun,
        .ready = wait ? ready_and_wait : ready,
        .wants_pause = wants_pause,
        .wants_stop = wants_stop,
        .is_over = is_over,
        .paused = paused,
        .reserved = reserved,
        .step = telemetry_step,
        .evaluation = telemetry_evaluation,
        .times = telemetry_times,
        .sample = telemetry_sample,
        .trace = telemetry_trace,
    };
}

/* -ENOMEM means memory of the rank's device, -ENOBUFS memory of its host. A process that was both
 * terminated and cancelled was terminated first, and most likely cancelled because of that. */
static Gimbal__StoppedRequest__Cause cause_of(struct session *session, int rc)
{
    bool by_peer = rc == -ECONNRESET || rc == -ECANCELED || rc == -ETIMEDOUT;
    return rc == 0                       ? GIMBAL__STOPPED_REQUEST__CAUSE__DONE
           : session_quiesced(session)   ? GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED
           : session_terminated(session) ? GIMBAL__STOPPED_REQUEST__CAUSE__FAULT
           : session_cancelled(session)  ? GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED
           : by_peer                     ? GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST
           : rc == -EBADMSG              ? GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED
           : rc == -ENOMEM               ? GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY
           : rc == -ENOBUFS              ? GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY
           : rc == -ENODATA              ? GIMBAL__STOPPED_REQUEST__CAUSE__DATA
                                         : GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
}

void session_stopped(struct session *session, int rank, int rc, bool keeps, const struct error *err)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    struct error why = {""};
    if (rc < 0)
        error_set(&why, rc, "%s%s", session_terminated(session) ? "SIGTERM: " : "", err->text);
    message_mend_text(why.text); /* it may contain a file name */
    stopped.job = session_job(session);
    stopped.epoch = session_epoch(session);
    stopped.rank = (uint32_t)rank;
    stopped.step = session_steps(session);
    stopped.cause = cause_of(session, rc);
    stopped.reason = why.text;
    stopped.keeps = keeps;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    session_send(session, &event);
}
