/* submit.c - `gimbal submit`: hand a job to the coordinator, and wait for it if asked to. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/saved.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/plan/plan.h"

#include <stdlib.h>
#include <unistd.h>

struct submit_values {
    const char *file, *plan, *from;
    bool wait, follow, weights_only;
};

static const struct flag submit_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct submit_values, file), "FILE",
     "the job file (-: standard input)"},
    {"plan", 0, FLAG_TEXT, offsetof(struct submit_values, plan), "FILE",
     "use this plan, written by 'gimbal plan -o json'"},
    {"from", 0, FLAG_TEXT, offsetof(struct submit_values, from), "JOB[@STEP]|DIRECTORY",
     "go on from this checkpoint: its weights, moments, step and place in the data"},
    {"weights-only", 0, FLAG_SWITCH, offsetof(struct submit_values, weights_only), NULL,
     "with --from: begin at step 0, with its weights and nothing else of it"},
    {"wait", 0, FLAG_SWITCH, offsetof(struct submit_values, wait), NULL,
     "wait until the job ends; exit with 0 if it is DONE"},
    {"follow", 0, FLAG_SWITCH, offsetof(struct submit_values, follow), NULL,
     "like --wait, and show progress on stderr"},
    {.name = NULL},
};

/* A job that is about to be submitted. */
struct draft {
    char *text; /* of the job file */
    char *plan; /* JSON; NULL: none is given */
    struct job_config *job;
    struct saved saved;     /* what it goes on from; folder NULL: it begins anew */
    struct ancestor origin; /* the same, as far as it is taken */
    struct texts differences;
};

static void draft_finish(struct draft *draft)
{
    ancestor_forget(&draft->differences);
    ancestor_finish(&draft->origin);
    saved_close(&draft->saved);
    job_config_destroy(draft->job);
    free(draft->plan);
    free(draft->text);
}

static json_t *draft_origin_json(const struct draft *draft)
{
    const struct ancestor *origin = &draft->origin;
    json_t *differences = json_array();
    if (!origin->folder) {
        json_decref(differences);
        return json_null();
    }
    for (size_t i = 0; i < draft->differences.count; i++)
        json_array_append_new(differences, json_string(draft->differences.items[i]));
    return json_pack("{s:s, s:I, s:b, s:o}", "folder", origin->folder, "step",
                     (json_int_t)origin->step, "weights_only", (int)origin->weights_only,
                     "differences", differences);
}

/* Where it goes on, and what is not as it was there, before anything is done. */
static void draft_tell_origin(const struct draft *draft)
{
    const struct ancestor *origin = &draft->origin;
    if (origin->weights_only)
        fprintf(stderr, "the job begins with the weights in '%s'\n", origin->folder);
    else
        fprintf(stderr, "the job goes on after step %llu of '%s'\n",
                (unsigned long long)origin->step, origin->folder);
    for (size_t i = 0; i < draft->differences.count; i++)
        fprintf(stderr, "not as in the checkpoint: %s\n", draft->differences.items[i]);
}

static void submit_print_accepted(const struct common *common, const struct draft *draft,
                                  const struct submission *submission)
{
    if (common->output >= OUTPUT_JSON) {
        output_print_object(
            (enum output)common->output,
            resource_object("Submission",
                            json_pack("{s:s, s:b, s:s, s:s, s:o}", "job", submission->job,
                                      "dry_run", common->dry_run, "waiting_reason",
                                      submission->waiting, "checkpoint_folder", submission->saved,
                                      "origin", draft_origin_json(draft))),
            stdout);
        return;
    }
    if (!common->dry_run)
        puts(submission->job);
    fflush(stdout);
    if (!common->dry_run && !*submission->saved && !common->quiet)
        fprintf(stderr,
                "nothing of %s is saved, and its model is lost when it ends: a folder that all "
                "nodes share, as checkpoint.dir of the job file or as 'checkpoints' of the "
                "coordinator's settings, would keep it\n",
                submission->job);
    if (*submission->waiting && !common->quiet)
        fprintf(stderr, "the job waits: %s\n", submission->waiting);
}

/* A signal ends the waiting, but not the job. */
static int submit_wait_for_job(const struct invocation *invocation,
                               const struct submission *submission, const char *name,
                               uint64_t from_ms, struct client *client, int signals,
                               struct error *err)
{
    const struct submit_values *values = invocation->values;
    struct history_options options = {.client = client,
                                      .signals = signals,
                                      .end_fd = -1,
                                      .timeout_s = invocation->common.timeout_s,
                                      .from_ms = from_ms};
    struct progress progress;
    struct follow follow;
    progress_open(&progress, stderr, !values->follow || invocation->common.quiet);
    follow_init(&follow, submission->job, name, &progress);
    follow.events_as_json = invocation->common.output == OUTPUT_JSONL;
    int code = follow_run(&follow, &options, err);
    if (follow.sample && invocation->common.output < OUTPUT_JSON)
        printf("%s\n", follow.sample);
    if (code > EXIT_SIGNAL)
        fprintf(stderr,
                "%s keeps running; 'gimbal events %s -w' follows it, 'gimbal cancel %s' ends it\n",
                submission->job, submission->job, submission->job);
    follow_finish(&follow);
    return code;
}

/* A folder is described by what its manifest says; of a job the coordinator knows all that. */
static Gimbal__Origin submit_describe_origin(const struct draft *draft)
{
    Gimbal__Origin origin = GIMBAL__ORIGIN__INIT;
    origin.step = draft->saved.step;
    origin.weights_only = draft->origin.weights_only;
    if (draft->saved.job) {
        origin.job = draft->saved.job;
        return origin;
    }
    origin.folder = draft->origin.folder;
    origin.samples = draft->origin.samples;
    if (draft->origin.spec)
        origin.job_yaml = draft->origin.spec;
    return origin;
}

static int submit_job(const struct invocation *invocation, const struct draft *draft,
                      struct error *err)
{
    const struct submit_values *values = invocation->values;
    Gimbal__Origin origin = submit_describe_origin(draft);
    const struct submitting what = {
        .name = draft->job->name,
        .yaml = draft->text,
        .plan = draft->plan,
        .origin = draft->origin.folder ? &origin : NULL,
        .dry_run = invocation->common.dry_run,
    };
    struct client client = {0};
    struct submission submission = {0};
    uint64_t from_ms = clock_ms();
    int signals = -1;
    if (values->wait || values->follow)
        signals = signals_open(err);
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = submission_send(&client, &what, &submission, err);
    if (code == EXIT_DONE)
        submit_print_accepted(&invocation->common, draft, &submission);
    if (code == EXIT_DONE && signals >= 0 && !invocation->common.dry_run)
        code = submit_wait_for_job(invocation, &submission, draft->job->name, from_ms, &client,
                                   signals, err);
    else if (code == EXIT_DONE && *submission.waiting)
        code = EXIT_WAITING;
    submission_finish(&submission);
    client_close(&client);
    if (signals >= 0)
        close(signals);
    return code;
}

/* Read a saved plan; *out is its text, to be freed. A file that is no plan is refused here, where
 * its name is known. */
static int submit_read_plan(const char *path, char **out, struct error *err)
{
    struct plan *plan;
    int rc = file_read(path, out, err);
    if (rc < 0)
        return exit_of_errno(rc);
    if (plan_decode(*out, &plan, err) < 0) {
        if (!filekind_explain(*out, path, FILE_PLAN, err))
            error_prefix(err, 0, "plan '%s'", path);
        return EXIT_INPUT;
    }
    plan_destroy(plan);
    return EXIT_DONE;
}

/* The job file, or without one that of what the job goes on from. */
static int submit_read_job(const char *file, struct draft *draft, struct error *err)
{
    const struct saved *saved = &draft->saved;
    if (file || !saved->folder)
        return jobfile_load(file, &draft->text, &draft->job, err);
    if (!saved->spec)
        return error_set(err, EXIT_USAGE, "needs a job file, which '%s' does not have: -f job.yaml",
                         saved->folder);
    char *name = xasprintf("the job file of '%s'", saved->job ? saved->job : saved->folder);
    int code = jobfile_take(xstrdup(saved->spec), name, &draft->text, &draft->job, err);
    free(name);
    return code;
}

static int submit_prepare(const struct invocation *invocation, struct draft *draft,
                          struct error *err)
{
    const struct submit_values *values = invocation->values;
    const char *file = values->file;
    int code = jobfile_path(invocation, &file, err);
    if (code == EXIT_DONE && values->weights_only && !values->from)
        code = error_set(err, EXIT_USAGE, "--weights-only is for --from: it says whose weights");
    if (code == EXIT_DONE && values->from)
        code = saved_find(&invocation->common, values->from, -1, &draft->saved, err);
    if (code == EXIT_DONE)
        code = submit_read_job(file, draft, err);
    if (code == EXIT_DONE && values->from)
        code = saved_origin(&draft->saved, values->weights_only, draft->job, &draft->origin,
                            &draft->differences, err);
    if (code == EXIT_DONE && values->from && !invocation->common.quiet)
        draft_tell_origin(draft);
    if (code == EXIT_DONE && values->plan)
        code = submit_read_plan(values->plan, &draft->plan, err);
    return code;
}

static int submit_run(const struct invocation *invocation, struct error *err)
{
    struct draft draft = {0};
    int code = submit_prepare(invocation, &draft, err);
    if (code == EXIT_DONE)
        code = submit_job(invocation, &draft, err);
    draft_finish(&draft);
    return code;
}

const struct command command_submit = {
    .name = "submit",
    .summary = "Submit a job to the coordinator, and print the job's name",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = submit_flags,
    .values_size = sizeof(struct submit_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT | TAKES_DRY_RUN,
    .run = submit_run,
};
