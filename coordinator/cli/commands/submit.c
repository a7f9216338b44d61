/* submit.c - `gimbal submit`: hand a job to the coordinator, and wait for it if asked to. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/process.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/plan/plan.h"

#include <stdlib.h>
#include <unistd.h>

struct submit_values {
    const char *file, *plan;
    bool wait, follow;
};

static const struct flag submit_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct submit_values, file), "FILE",
     "the job file (-: standard input)"},
    {"plan", 0, FLAG_TEXT, offsetof(struct submit_values, plan), "FILE",
     "use this plan, written by 'gimbal plan -o json'"},
    {"wait", 0, FLAG_SWITCH, offsetof(struct submit_values, wait), NULL,
     "wait until the job ends; exit with 0 if it is DONE"},
    {"follow", 0, FLAG_SWITCH, offsetof(struct submit_values, follow), NULL,
     "like --wait, and show progress on stderr"},
    {.name = NULL},
};

static void submit_print_accepted(const struct common *common, const struct submission *submission)
{
    if (common->output >= OUTPUT_JSON) {
        output_print_object(
            (enum output)common->output,
            resource_object("Submission",
                            json_pack("{s:s, s:b, s:s}", "job", submission->job, "dry_run",
                                      common->dry_run, "waiting_reason", submission->waiting)),
            stdout);
        return;
    }
    if (!common->dry_run)
        puts(submission->job);
    fflush(stdout);
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

static int submit_job(const struct invocation *invocation, const char *text, const char *plan,
                      const char *name, struct error *err)
{
    const struct submit_values *values = invocation->values;
    struct client client = {0};
    struct submission submission = {0};
    uint64_t from_ms = clock_ms();
    int signals = -1;
    if (values->wait || values->follow)
        signals = signals_open(err);
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = submission_send(&client, name, text, plan, invocation->common.dry_run, &submission,
                               err);
    if (code == EXIT_DONE)
        submit_print_accepted(&invocation->common, &submission);
    if (code == EXIT_DONE && signals >= 0 && !invocation->common.dry_run)
        code = submit_wait_for_job(invocation, &submission, name, from_ms, &client, signals, err);
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

static int submit_run(const struct invocation *invocation, struct error *err)
{
    const struct submit_values *values = invocation->values;
    struct job_config *job;
    char *text, *plan = NULL;
    const char *file = values->file;
    int code = jobfile_path(invocation, &file, err);
    if (code == EXIT_DONE)
        code = jobfile_load(file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    if (values->plan)
        code = submit_read_plan(values->plan, &plan, err);
    if (code == EXIT_DONE)
        code = submit_job(invocation, text, plan, job->name, err);
    free(plan);
    free(text);
    job_config_destroy(job);
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
