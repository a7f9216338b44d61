/* training.c - follows the events of an executor, and stops it on a signal. */
#include "coordinator/cli/local/training.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/base/utf8.h"
#include "common/channel/channel.h"
#include "common/rpc/clock.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/local/executor.h"
#include "coordinator/cli/local/lines.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"
#include "proto/executor.pb-c.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* How long an executor that was asked to stop, or to save, has before it is killed. */
#define PATIENCE_MS 10000
#define SAVING_PATIENCE_MS 600000
/* Weight of the newest step in the mean step time. */
#define MEAN_WEIGHT 0.05

struct training {
    const struct training_options *options;
    struct training_result *result;
    struct progress_state state;
    struct channel channel;
    struct child child;
    struct lines lines; /* what the executor says */
    int signals;
    int signal;   /* that asked us to stop; 0: none */
    bool insists; /* it was asked to stop, and is no longer waited for */
    bool stopped; /* the executor has reported how it ended */
    Gimbal__StoppedRequest__Cause cause;
    char *reason;
    char plan_text[96];
};

/* Every rank knows the same loss; the first one counts. */
static void take_step(struct training *training, const Gimbal__StepRecord *step)
{
    struct training_result *result = training->result;
    if (step->rank != 0)
        return;
    const struct job_config *job = training->options->offline->job;
    double *mean = &result->step_time_s;
    *mean = *mean > 0 ? *mean + MEAN_WEIGHT * (step->seconds - *mean) : step->seconds;
    if (step->step == 2) /* the first step was also a warm-up */
        *mean = step->seconds;
    result->steps = step->step;
    result->loss = step->loss;
    result->tokens_per_s =
        (double)job->train.global_batch * (double)job->model.seq / result->step_time_s;
    training->state.step = result->steps;
    training->state.loss = result->loss;
    training->state.step_time_s = result->step_time_s;
    training->state.tokens_per_s = result->tokens_per_s;
    if (training->options->steps_as_json)
        output_print_object(
            OUTPUT_JSONL,
            resource_object("Step",
                            json_pack("{s:I, s:o, s:f, s:o}", "step", (json_int_t)result->steps,
                                      "loss", resource_number(step->loss), "time_s", step->seconds,
                                      "gradient_norm", resource_number(step->gradient_norm))),
            stdout);
}

static void take_evaluation(struct training *training, const Gimbal__EvaluationRecord *evaluation)
{
    if (evaluation->text.len > 0) {
        free(training->result->sample);
        training->result->sample = utf8_clean(evaluation->text.data, evaluation->text.len);
        return;
    }
    training->result->heldout_loss = evaluation->loss;
    training->state.heldout_loss = evaluation->loss;
}

static void take_telemetry(struct training *training, const Gimbal__TelemetryRecord *record)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        take_step(training, record->step);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        take_evaluation(training, record->evaluation);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_LOG:
        progress_note(training->options->progress, "rank %u: %s", record->log->rank,
                      record->log->text);
        break;
    default:
        break;
    }
}

/* Whether it is the rank's own failure, not a consequence of another's or of being told to stop. */
static bool is_root(Gimbal__StoppedRequest__Cause cause)
{
    return cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA;
}

/* The first fault names the cause; the others only follow from it. */
static void take_stopped(struct training *training, const Gimbal__StoppedRequest *stopped)
{
    if (training->stopped && is_root(training->cause))
        return;
    training->stopped = true;
    training->cause = stopped->cause;
    free(training->reason);
    training->reason = xstrdup(stopped->reason);
}

static void take_staged(struct training *training, const Gimbal__StagedRequest *staged)
{
    char size[32];
    if (!staged->failure[0]) /* a failure is a warning of the executor's */
        progress_note(training->options->progress, "checkpoint of step %llu, %s",
                      (unsigned long long)staged->step,
                      units_print_bytes(size, sizeof size, (double)staged->bytes));
}

static void take_event(struct training *training, const Gimbal__ExecutorEvent *event)
{
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY)
        take_telemetry(training, event->telemetry);
    else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STAGED)
        take_staged(training, event->staged);
    else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED)
        take_stopped(training, event->stopped);
}

/* 0: everything that has arrived was read; -EPIPE: the end, which is no failure and has no
 * message. */
static int read_events(struct training *training, struct error *err)
{
    ProtobufCMessage *message;
    int rc;
    while ((rc = channel_read(&training->channel, &gimbal__executor_event__descriptor, 0, &message,
                              err)) > 0) {
        take_event(training, (const Gimbal__ExecutorEvent *)message);
        message_free(message);
    }
    if (rc == -EPIPE)
        err->text[0] = '\0';
    return rc;
}

static bool saves(const struct training *training)
{
    return training->options->checkpoint || training->options->offline->job->checkpoint.dir;
}

static void ask_to_stop(struct training *training)
{
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    struct error ignored;
    cancel.reason = "interrupted";
    cancel.save = saves(training);
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL;
    command.cancel = &cancel;
    /* a broken channel shows when it is read */
    channel_write(&training->channel, &command.base, &ignored);
}

static void take_signal(struct training *training, int signal, uint64_t *until_ms)
{
    training->insists = training->signal != 0;
    if (training->insists)
        return;
    training->signal = signal;
    *until_ms = rpc_clock_ms() + (saves(training) ? SAVING_PATIENCE_MS : PATIENCE_MS);
    progress_note(training->options->progress, "stopping%s; interrupt again to stop at once",
                  saves(training) ? " and saving a checkpoint" : "");
    ask_to_stop(training);
}

/* The executor's sentences are shown above the live line; warnings, also if progress is not. */
static void show_line(void *data, const char *line)
{
    const struct training *training = data;
    progress_say(training->options->progress, "%s", line);
}

/* Follow until the executor closes its side. A first signal asks it to stop; a second one insists,
 * and so does running out of patience. */
static int follow(struct training *training, struct error *err)
{
    uint64_t until_ms = UINT64_MAX;
    int rc = 0;
    while (rc == 0) {
        struct pollfd fds[] = {{training->channel.fd, POLLIN, 0},
                               {training->signals, POLLIN, 0},
                               {training->lines.fd, POLLIN, 0}};
        uint64_t now_ms = rpc_clock_ms();
        training->insists = now_ms >= until_ms;
        if (training->insists)
            return 0;
        poll(fds, 3, until_ms == UINT64_MAX ? -1 : (int)(until_ms - now_ms));
        int signal = signals_take(training->signals);
        if (signal)
            take_signal(training, signal, &until_ms);
        if (training->insists)
            return 0;
        rc = read_events(training, err);
        lines_take(&training->lines, show_line, training);
        if (training->state.step)
            progress_update(training->options->progress, &training->state,
                            (double)rpc_clock_ms() / 1000);
    }
    return rc == -EPIPE ? 0 : rc;
}

static int conclude(struct training *training, int rc, struct error *err)
{
    char end[64];
    const struct child *child = &training->child;
    if (training->signal)
        return EXIT_SIGNAL + training->signal;
    if (rc < 0)
        return exit_of_errno(rc);
    if (!training->stopped)
        return error_set(err, EXIT_FAILED, "the executor ended without a message: %s",
                         child_print_end(child, end, sizeof end));
    if (training->cause != GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        return error_set(
            err, training->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA ? EXIT_INPUT : EXIT_FAILED,
            "%s", *training->reason ? training->reason : "the executor stopped");
    return EXIT_DONE;
}

int training_run(const struct training_options *options, struct training_result *result,
                 struct error *err)
{
    struct training training = {
        .options = options, .result = result, .channel.fd = -1, .lines.fd = -1};
    char division[64];
    *result = (struct training_result){.loss = NAN, .heldout_loss = NAN};
    const struct offline *offline = options->offline;
    snprintf(training.plan_text, sizeof training.plan_text, "%s %s", offline->best->id,
             plan_print(division, sizeof division, offline->best));
    training.state = (struct progress_state){.name = offline->job->name,
                                             .step_count = (uint64_t)offline->job->train.steps,
                                             .loss = NAN,
                                             .heldout_loss = NAN,
                                             .plan = training.plan_text};
    training.signals = signals_open(err);
    int rc = training.signals < 0 ? training.signals
                                  : executor_start(options, &training.child, &training.channel,
                                                   &training.lines.fd, err);
    if (rc == 0)
        rc = follow(&training, err);
    channel_close(&training.channel);
    if (training.child.pid && !child_wait(&training.child, training.insists ? 0 : PATIENCE_MS))
        child_stop(&training.child, 0);
    lines_take(&training.lines, show_line, &training);
    lines_close(&training.lines, show_line, &training);
    progress_close(options->progress);
    if (training.signals >= 0)
        close(training.signals);
    int code = conclude(&training, rc, err);
    free(training.reason);
    return code;
}

void training_result_finish(struct training_result *result)
{
    free(result->sample);
    result->sample = NULL;
}
