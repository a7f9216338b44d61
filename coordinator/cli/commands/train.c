/* train.c - `gimbal train --local N`: trains without a cluster; the ranks are threads of one
 * executor, which is followed by its events, and stopped by a signal. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/executor.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/machine.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/progress.h"
#include "coordinator/cli/saved.h"
#include "coordinator/cli/search.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/folders.h"
#include "common/config/paths.h"
#include "common/message/message.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

struct train_values {
    const char *file, *plan, *search, *checkpoint, *device, *from;
    int64_t local;
    bool measure, resume, weights_only;
};

static const struct flag train_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct train_values, file), "FILE",
     "the job file (-: standard input)"},
    {"local", 0, FLAG_NUMBER, offsetof(struct train_values, local), "N",
     "how many devices to divide this machine's cores into", .least = 1,
     .greatest = MACHINE_DEVICES_MAX},
    MACHINE_MEASURE_FLAG(struct train_values, measure),
    {"device", 0, FLAG_TEXT, offsetof(struct train_values, device), "DEVICE",
     "let N ranks share this device instead of the cores: cuda, or cuda:GPU-6f0c... of several"},
    {"plan", 0, FLAG_TEXT, offsetof(struct train_values, plan), "FILE",
     "use this plan, written by 'gimbal plan -o json'"},
    {"search", 0, FLAG_TEXT, offsetof(struct train_values, search), "NAME",
     "the search, instead of the job's plan.search"},
    {"checkpoint", 0, FLAG_TEXT, offsetof(struct train_values, checkpoint), "DIR",
     "where to save, instead of the job's checkpoint.dir (a folder in ./runs); none: nowhere"},
    {"resume", 0, FLAG_SWITCH, offsetof(struct train_values, resume), NULL,
     "continue from the newest checkpoint there (of the newest run of this job in ./runs)"},
    {"from", 0, FLAG_TEXT, offsetof(struct train_values, from), "JOB[@STEP]|DIRECTORY",
     "go on from this checkpoint: its weights, moments, step and place in the data"},
    {"weights-only", 0, FLAG_SWITCH, offsetof(struct train_values, weights_only), NULL,
     "with --from: begin at step 0, with its weights and nothing else of it"},
    {.name = NULL},
};

struct training_result {
    uint64_t steps;
    double loss, heldout_loss; /* NAN: none */
    uint64_t heldout_targets;  /* tokens that heldout_loss is of */
    double step_time_s;        /* measured: a moving average */
    double tokens_per_s;
    char *sample;     /* text from the trained model; NULL: none */
    char *checkpoint; /* folder of the newest one; NULL: none was saved */
};

struct training_options {
    const struct offline *offline;
    struct progress *progress;
    bool steps_as_json; /* print every step as an object on stdout */
    const char *root;   /* the folder of its checkpoints; NULL: nothing is saved */
    bool resume;        /* from the newest checkpoint there */
    const char *from;   /* folder of another checkpoint to go on from; NULL: none */
    bool weights_only;  /* with from: begin at step 0, with its weights */
    bool verbose;       /* show everything that the executor logs, not only what went wrong */
};

/* How long an executor that was asked to stop, or to save, has before it is killed. */
#define PATIENCE_MS 10000
#define SAVING_PATIENCE_MS 600000
/* Weight of the newest step in the mean step time. */
#define MEAN_WEIGHT 0.05

struct training {
    const struct training_options *options;
    struct training_result *result;
    struct progress_state state;
    struct executor executor;
    int signals;
    int signal;   /* that asked us to stop; 0: none */
    bool insists; /* it was asked to stop, and is no longer waited for */
    bool stopped; /* the executor has reported how it ended */
    Gimbal__StoppedRequest__Cause cause;
    char *reason;
    char plan_text[96];
};

/* Every rank knows the same loss; the first one counts. */
static void train_take_step(struct training *training, const Gimbal__StepRecord *step)
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

static void train_take_evaluation(struct training *training,
                                  const Gimbal__EvaluationRecord *evaluation)
{
    if (evaluation->text.len > 0) {
        free(training->result->sample);
        training->result->sample = text_clean(evaluation->text.data, evaluation->text.len);
        return;
    }
    training->result->heldout_loss = evaluation->loss;
    training->result->heldout_targets = evaluation->targets;
    training->state.heldout_loss = evaluation->loss;
}

static void train_take_telemetry(struct training *training, const Gimbal__TelemetryRecord *record)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        train_take_step(training, record->step);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        train_take_evaluation(training, record->evaluation);
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
static bool train_is_root(Gimbal__StoppedRequest__Cause cause)
{
    return cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_FINITE ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA;
}

/* The first fault names the cause; the others only follow from it. */
static void train_take_stopped(struct training *training, const Gimbal__StoppedRequest *stopped)
{
    if (training->stopped && train_is_root(training->cause))
        return;
    training->stopped = true;
    training->cause = stopped->cause;
    free(training->reason);
    training->reason = xstrdup(stopped->reason);
}

static void train_take_staged(struct training *training, const Gimbal__StagedRequest *staged)
{
    char size[32];
    if (staged->failure[0]) /* a failure is a warning of the executor's */
        return;
    char *name = checkpoint_name(staged->step, staged->epoch);
    progress_note(training->options->progress, "checkpoint of step %llu, %s: %s/%s",
                  (unsigned long long)staged->step,
                  units_print_bytes(size, sizeof size, (double)staged->bytes),
                  training->options->root, name);
    free(training->result->checkpoint);
    training->result->checkpoint = xasprintf("%s/%s", training->options->root, name);
    free(name);
}

static void train_take_event(struct training *training, const Gimbal__ExecutorEvent *event)
{
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY)
        train_take_telemetry(training, event->telemetry);
    else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STAGED)
        train_take_staged(training, event->staged);
    else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED)
        train_take_stopped(training, event->stopped);
}

/* 0: everything that has arrived was read; -EPIPE: the end, which is no failure and has no
 * message. */
static int train_read_events(struct training *training, struct error *err)
{
    Gimbal__ExecutorEvent *event;
    int rc;
    while ((rc = executor_read(&training->executor, 0, &event, err)) > 0) {
        train_take_event(training, event);
        message_free(&event->base);
    }
    if (rc == -EPIPE)
        err->text[0] = '\0';
    return rc;
}

static void train_ask_to_stop(struct training *training)
{
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    struct error ignored;
    cancel.reason = "interrupted";
    cancel.save = training->options->root != NULL;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL;
    command.cancel = &cancel;
    /* a broken channel shows when it is read */
    channel_write(&training->executor.channel, &command.base, &ignored);
}

static void train_take_signal(struct training *training, int signal, uint64_t *until_ms)
{
    training->insists = training->signal != 0;
    if (training->insists)
        return;
    training->signal = signal;
    bool saves = training->options->root != NULL;
    *until_ms = clock_ms() + (saves ? SAVING_PATIENCE_MS : PATIENCE_MS);
    progress_note(training->options->progress, "stopping%s; interrupt again to stop at once",
                  saves ? " and saving a checkpoint" : "");
    train_ask_to_stop(training);
}

/* The executor's sentences are shown above the live line; warnings, also if progress is not. */
static void train_show_line(void *data, const char *line)
{
    const struct training *training = data;
    progress_say(training->options->progress, "%s", line);
}

/* Follow until the executor closes its side. A first signal asks it to stop; a second one insists,
 * and so does running out of patience. */
static int train_follow(struct training *training, struct error *err)
{
    uint64_t until_ms = UINT64_MAX;
    int rc = 0;
    while (rc == 0) {
        struct pollfd fds[] = {{training->executor.channel.fd, POLLIN, 0},
                               {training->signals, POLLIN, 0},
                               {training->executor.said, POLLIN, 0}};
        uint64_t now_ms = clock_ms();
        training->insists = now_ms >= until_ms;
        if (training->insists)
            return 0;
        poll(fds, 3, until_ms == UINT64_MAX ? -1 : (int)(until_ms - now_ms));
        int signal = signals_take(training->signals);
        if (signal)
            train_take_signal(training, signal, &until_ms);
        if (training->insists)
            return 0;
        rc = train_read_events(training, err);
        executor_take_lines(&training->executor, train_show_line, training);
        if (training->state.step)
            progress_update(training->options->progress, &training->state,
                            (double)clock_ms() / 1000);
    }
    return rc == -EPIPE ? 0 : rc;
}

static int train_exit_of_cause(Gimbal__StoppedRequest__Cause cause)
{
    return cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA        ? EXIT_INPUT
           : cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED ? EXIT_IO
                                                                : EXIT_FAILED;
}

/* A signal that ended the tries to save the last step is not all there is to say. */
static int train_conclude(const struct training *training, int rc, struct error *err)
{
    bool lost = training->stopped && training->cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED;
    if (training->signal && !lost)
        return EXIT_SIGNAL + training->signal;
    if (rc < 0)
        return exit_of_errno(rc);
    if (!training->stopped)
        return executor_explain_end(&training->executor, EXIT_FAILED, err);
    if (training->cause != GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        return error_set(err, train_exit_of_cause(training->cause), "%s",
                         *training->reason ? training->reason : "the executor stopped");
    return EXIT_DONE;
}

/* The job as it was read: what it came from may be a pipe, which has it once. */
static int train_start(struct executor *executor, const struct training_options *options,
                       struct error *err)
{
    const struct offline *offline = options->offline;
    const struct machine *machine = &offline->machine;
    char ranks[16], *plan = plan_encode(offline->best, offline->graph);
    snprintf(ranks, sizeof ranks, "%d", machine->count);
    int rc = executor_begin(executor, err);
    if (rc == 0)
        rc = executor_text(executor, "--plan", "plan.json", plan, err);
    if (rc == 0)
        rc = executor_text(executor, "--job", "job.yaml", offline->text, err);
    free(plan);
    if (rc < 0)
        return rc;
    executor_flag(executor, "--local", ranks);
    executor_flag(executor, "--devices", machine->cpusets);
    executor_flag(executor, "--device", machine->device);
    if (options->resume)
        executor_word(executor, "--resume");
    executor_flag(executor, "--from", options->from);
    if (options->weights_only)
        executor_word(executor, "--weights-only");
    executor_flag(executor, "--checkpoint", options->root);
    executor_flag(executor, "--sentences", options->verbose ? "info" : "warn");
    return executor_listen(executor, err);
}

/* Train to the end or until a signal. An enum exit_code; the result is filled in any case, and the
 * caller frees its texts. */
static int train_run_steps(const struct training_options *options, struct training_result *result,
                           struct error *err)
{
    struct training training = {.options = options, .result = result};
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
    if (training.signals < 0)
        return exit_of_errno(training.signals);
    int rc = train_start(&training.executor, options, err);
    if (rc == 0)
        rc = train_follow(&training, err);
    executor_end(&training.executor, training.insists ? 0 : PATIENCE_MS);
    executor_take_lines(&training.executor, train_show_line, &training);
    executor_last_lines(&training.executor, train_show_line, &training);
    progress_close(options->progress);
    close(training.signals);
    int code = train_conclude(&training, rc, err);
    executor_finish(&training.executor);
    free(training.reason);
    return code;
}

static json_t *train_measured_or_null(const struct training_result *result)
{
    return result->steps == 0 ? json_null()
                              : json_pack("{s:f, s:f}", "step_time_s", result->step_time_s,
                                          "tokens_per_s", result->tokens_per_s);
}

/* A training that ends well without running a step had done all of them before. */
static int64_t train_steps_done(const struct offline *offline, const struct training_result *result)
{
    return result->steps > 0 ? (int64_t)result->steps : offline->job->train.steps;
}

static void train_print_result_json(const struct common *common, const struct offline *offline,
                                    const struct training_result *result)
{
    const struct plan *plan = offline->best;
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:{s:f, s:f, s:I}, s:s?, s:s?}", "name",
        offline->job->name, "plan", plan->id, "steps",
        (json_int_t)train_steps_done(offline, result), "loss", resource_number(result->loss),
        "heldout_loss", resource_number(result->heldout_loss), "heldout_targets",
        isnan(result->heldout_loss) ? json_null()
                                    : json_integer((json_int_t)result->heldout_targets),
        "measured", train_measured_or_null(result), "predicted", "step_time_s",
        plan->predicted.step_time_s, "tokens_per_s", plan->predicted.tokens_per_s,
        "memory_bytes_max", (json_int_t)plan->predicted.memory_bytes_max, "sample", result->sample,
        "checkpoint", result->checkpoint);
    output_print_object((enum output)common->output, resource_object("TrainResult", object),
                        stdout);
}

static void train_print_figures(const struct offline *offline, const struct training_result *result)
{
    char predicted[32], measured[32];
    printf("loss           %.4f after %llu steps\n", result->loss,
           (unsigned long long)result->steps);
    if (!isnan(result->heldout_loss))
        printf("held-out loss  %.4f over %llu tokens\n", result->heldout_loss,
               (unsigned long long)result->heldout_targets);
    printf("step time      %s predicted, %s measured\n",
           units_print_seconds(predicted, sizeof predicted, offline->best->predicted.step_time_s),
           units_print_seconds(measured, sizeof measured, result->step_time_s));
}

static void train_print_result(const struct offline *offline, const struct training_result *result)
{
    if (result->steps > 0)
        train_print_figures(offline, result);
    else
        printf("all %lld steps are already done\n", (long long)train_steps_done(offline, result));
    if (result->sample)
        printf("\n%s\n", result->sample);
}

/* Where it saves: as the flag says, or the job; NULL: nobody does. */
static int train_saving_dir(const struct train_values *values, const struct job_config *job,
                            char **dir, struct error *err)
{
    *dir = NULL;
    if (values->checkpoint)
        return path_resolve("--checkpoint", values->checkpoint, PATH_HERE, dir, err);
    if (job->checkpoint.dir)
        *dir = xstrdup(job->checkpoint.dir);
    return 0;
}

/* A run that was told nothing has a folder of its own, *run. It is not refused if that cannot be
 * made, but then its model is lost. */
static int train_prepare_saving(const struct train_values *values, const struct job_config *job,
                                char **root, bool *run, struct error *err)
{
    char *dir;
    if (values->checkpoint && strcmp(values->checkpoint, "none") == 0 && !values->resume)
        return EXIT_DONE;
    int rc = train_saving_dir(values, job, &dir, err);
    *run = rc == 0 && !dir;
    if (rc == 0)
        rc = machine_prepare_saving(dir, job->name, values->resume, root, err);
    if (rc < 0 && dir)
        error_prefix(err, rc, values->checkpoint ? "--checkpoint" : "checkpoint.dir");
    if (rc < 0 && *run && !values->resume) {
        fprintf(stderr,
                "nothing is saved, and the model is lost at the end: %s; --checkpoint DIR names "
                "another folder\n",
                err->text);
        err->text[0] = '\0';
        rc = 0;
    }
    free(dir);
    return exit_of_errno(rc);
}

/* It can go on from there; how it differs the executor tells, which has read both. */
static int train_check_origin(const struct invocation *invocation, const struct saved *from,
                              const struct job_config *job, struct error *err)
{
    const struct train_values *values = invocation->values;
    struct ancestor origin;
    struct texts differences;
    int code = saved_origin(from, values->weights_only, job, &origin, &differences, err);
    if (code == EXIT_DONE && !invocation->common.quiet && origin.weights_only)
        fprintf(stderr, "training begins with the weights in '%s'\n", origin.folder);
    else if (code == EXIT_DONE && !invocation->common.quiet)
        fprintf(stderr, "training goes on after step %llu of '%s'\n",
                (unsigned long long)origin.step, origin.folder);
    ancestor_forget(&differences);
    ancestor_finish(&origin);
    return code;
}

static int train_here(const struct invocation *invocation, const char *root,
                      const struct saved *from, struct offline *offline, struct error *err)
{
    const struct common *common = &invocation->common;
    const struct train_values *values = invocation->values;
    struct progress progress;
    struct training_result result;
    struct training_options options = {.offline = offline,
                                       .progress = &progress,
                                       .root = root,
                                       .resume = values->resume,
                                       .from = from->folder,
                                       .weights_only = values->weights_only,
                                       .verbose = common->verbose,
                                       .steps_as_json = common->output == OUTPUT_JSONL};
    progress_open(&progress, stderr, common->quiet);
    int code = train_run_steps(&options, &result, err);
    bool tells = result.steps > 0 || code == EXIT_DONE;
    if (tells && common->output >= OUTPUT_JSON)
        train_print_result_json(common, offline, &result);
    else if (tells)
        train_print_result(offline, &result);
    free(result.sample);
    free(result.checkpoint);
    return code;
}

static int train_prepared(const struct invocation *invocation, const struct saved *from,
                          struct offline *offline, struct error *err)
{
    char *root = NULL;
    bool run = false;
    int code = from->folder ? train_check_origin(invocation, from, offline->job, err) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = train_prepare_saving(invocation->values, offline->job, &root, &run, err);
    if (code == EXIT_DONE)
        code = train_here(invocation, root, from, offline, err);
    if (root && run)
        machine_forget_run(root); /* unless it has saved something */
    free(root);
    return code;
}

static int train_check_flags(const struct train_values *values, struct error *err)
{
    if (values->local == 0)
        return error_set(err, EXIT_USAGE,
                         "needs --local N, the number of devices on this machine; 'gimbal submit' "
                         "trains on a cluster");
    if (values->resume && values->from)
        return error_set(err, EXIT_USAGE,
                         "--resume continues what is saved where it saves, --from names another "
                         "checkpoint: give one of the two");
    if (values->weights_only && !values->from)
        return error_set(err, EXIT_USAGE, "--weights-only is for --from: it says whose weights");
    return EXIT_DONE;
}

/* Without a job file it is that of the checkpoint to go on from. */
static int train_with(const struct invocation *invocation, const char *file,
                      const struct saved *from, struct error *err)
{
    const struct train_values *values = invocation->values;
    struct offline_request request = {.job_path = file ? file : from->folder,
                                      .job_text = file ? NULL : from->spec,
                                      .search = values->search,
                                      .plan_path = values->plan,
                                      .device_count = (int)values->local,
                                      .device = values->device,
                                      .measure = values->measure,
                                      .to_train = true,
                                      .quiet = invocation->common.quiet};
    struct offline offline;
    if (!file && from->folder && !from->spec)
        return error_set(err, EXIT_USAGE, "needs a job file, which '%s' does not have: -f job.yaml",
                         from->folder);
    int code = offline_run(&request, &offline, err);
    if (offline.result.count > 0 && !invocation->common.quiet)
        candidates_print(&offline.result, invocation->common.verbose ? 0 : 5, stderr);
    if (code == EXIT_DONE && !invocation->common.dry_run)
        code = train_prepared(invocation, from, &offline, err);
    offline_finish(&offline);
    return code;
}

static int train_run(const struct invocation *invocation, struct error *err)
{
    const struct train_values *values = invocation->values;
    const char *file = values->file;
    struct saved from = {0};
    int code = train_check_flags(values, err);
    if (code == EXIT_DONE)
        code = jobfile_path(invocation, &file, err);
    if (code == EXIT_DONE && values->from)
        code = saved_find(&invocation->common, values->from, -1, &from, err);
    if (code == EXIT_DONE && values->from)
        code = saved_reach(&from, err);
    if (code == EXIT_DONE)
        code = train_with(invocation, file, &from, err);
    saved_close(&from);
    return code;
}

const struct command command_train = {
    .name = "train",
    .summary = "Train on this machine, without a cluster",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = train_flags,
    .values_size = sizeof(struct train_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_DRY_RUN,
    .run = train_run,
};
