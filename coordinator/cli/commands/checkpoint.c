/* checkpoint.c - `gimbal checkpoint` and `gimbal generate`: what a job has saved, and what can be
 * made of it. A checkpoint is one of those listed for a JOB, or a DIRECTORY given by its path;
 * tensors are read by an executor, which prints the result itself. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/executor.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/saved.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPERATURE_STANDARD "0.8"
#define TEMPERATURE_MAX 100

/* Selects a checkpoint of a JOB, or tells the job file that belongs to a DIRECTORY, which it has by
 * itself unless an older release wrote it. */
struct saved_flags {
    const char *file;
    int64_t step; /* -1: not given */
};
/* clang-format off */
#define SAVED_FLAGS(type, member)                                                               \
    {"file", 'f', FLAG_TEXT, offsetof(type, member.file), "FILE",                               \
     "with a DIRECTORY: the job file that it was trained by (the one that it has)"},            \
    {"step", 0, FLAG_NUMBER, offsetof(type, member.step), "N",                                  \
     "with a JOB: the checkpoint of this step (the newest undamaged one)", .standard = -1}
/* clang-format on */

/* Have the executor read a checkpoint: words[] are its arguments, ending with NULL; job is the text
 * of the job file, or NULL. An error is its own; `what` is used if it ended without one. */
static int saved_read(const char *const *words, const char *job, const char *what,
                      struct error *err)
{
    struct executor executor;
    int rc = executor_begin_report(&executor, err);
    if (rc == 0)
        executor_words(&executor, words);
    if (rc == 0 && job)
        rc = executor_text(&executor, "--job", "job.yaml", job, err);
    if (rc == 0)
        rc = executor_start(&executor, STDOUT_FILENO, STDERR_FILENO, err);
    if (rc == 0)
        executor_end(&executor, -1);
    int code = rc < 0 ? EXIT_FAILED : executor_read_report(&executor, what, err);
    executor_finish(&executor);
    return code;
}

/* The job file that a folder was trained by: as given, or as its manifest has it. */
static int saved_take_file(const struct saved_flags *flags, struct saved *saved, struct error *err)
{
    struct job_config *job;
    char *text;
    if (!flags->file && !saved->spec)
        return error_set(err, EXIT_USAGE,
                         "needs the job file that '%s' was trained by: -f job.yaml", saved->folder);
    if (!flags->file)
        return EXIT_DONE;
    int code = jobfile_load(flags->file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    job_config_destroy(job);
    free(saved->spec);
    saved->spec = text;
    return EXIT_DONE;
}

/* what: a JOB or a DIRECTORY. The caller closes *out. An enum exit_code. */
static int saved_open(const struct common *common, const struct saved_flags *flags,
                      const char *what, struct saved *out, struct error *err)
{
    bool path = named_path(what);
    *out = (struct saved){0};
    if (path && flags->step >= 0)
        return error_set(err, EXIT_USAGE,
                         "--step is for a JOB: a folder already holds a single step");
    if (!path && flags->file)
        return error_set(err, EXIT_USAGE, "-f is for a DIRECTORY: %s has its own job file", what);
    int code = saved_find(common, what, flags->step, out, err);
    if (code == EXIT_DONE)
        code = path ? saved_take_file(flags, out, err) : saved_reach(out, err);
    if (code != EXIT_DONE)
        saved_close(out);
    return code;
}

static void checkpoint_list_print_list(const struct common *common, const Gimbal__GetJobReply *job)
{
    json_t *items = json_array();
    for (size_t i = 0; i < job->n_checkpoints; i++)
        json_array_append_new(items, resource_checkpoint(job->checkpoints[i]));
    output_print_list((enum output)common->output, "CheckpointList", "checkpoints", items, stdout);
}

static void checkpoint_list_print_table(const struct common *common, const Gimbal__GetJobReply *job)
{
    static const struct column columns[] = {
        {.name = "STEP", .right = true},
        {.name = "EPOCH", .right = true},
        {.name = "SIZE", .right = true},
        {.name = "LISTED"},
        {.name = "STATE"},
        {.name = "FOLDER"},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        const Gimbal__Checkpoint *checkpoint = job->checkpoints[i];
        char size[32], when[32];
        table_add(table, "%" PRIu64, checkpoint->step);
        table_add(table, "%" PRIu64, checkpoint->epoch);
        table_add(table, "%s", units_print_bytes(size, sizeof size, (double)checkpoint->bytes));
        table_add(table, "%s", output_print_time(when, sizeof when, checkpoint->unix_ms));
        table_add(table, "%s", checkpoint->damaged ? "damaged" : "");
        table_add(table, "%s", checkpoint->folder);
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static int checkpoint_list_run(const struct invocation *invocation, struct error *err)
{
    const char *job = invocation->arguments[0];
    Gimbal__GetJobReply *reply;
    int code = client_get_job_once(&invocation->common, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (invocation->common.output >= OUTPUT_JSON)
        checkpoint_list_print_list(&invocation->common, reply);
    else
        checkpoint_list_print_table(&invocation->common, reply);
    if (reply->n_checkpoints == 0 && invocation->common.output < OUTPUT_JSON &&
        !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", job);
    message_free(&reply->base);
    return EXIT_DONE;
}

const struct command command_checkpoint_list = {
    .name = "checkpoint list",
    .summary = "List the checkpoints of a job",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = checkpoint_list_run,
};

static int verify_folder(const char *folder, struct error *err)
{
    const char *const words[] = {"--verify-checkpoint", folder, NULL};
    if (saved_read(words, NULL, "its check", err) == EXIT_DONE)
        return EXIT_DONE;
    return error_prefix(err, EXIT_FAILED, "checkpoint '%s' cannot be trusted", folder);
}

/* Whether a job that runs has removed this checkpoint, because it keeps only the newest ones. */
static bool verify_is_removed(const struct invocation *invocation, const char *job,
                              const char *folder)
{
    Gimbal__GetJobReply *reply;
    struct error ignored;
    if (client_get_job_once(&invocation->common, job, &reply, &ignored) != EXIT_DONE)
        return false;
    bool listed = false;
    for (size_t i = 0; i < reply->n_checkpoints; i++)
        listed = listed || strcmp(reply->checkpoints[i]->folder, folder) == 0;
    message_free(&reply->base);
    return !listed;
}

static int verify_listed(const struct invocation *invocation, const char *job, const char *folder,
                         struct error *err)
{
    int code = verify_folder(folder, err);
    if (code == EXIT_DONE || !verify_is_removed(invocation, job, folder))
        return code;
    if (!invocation->common.quiet)
        fprintf(stderr, "checkpoint '%s' was removed for newer ones before it was checked\n",
                folder);
    return EXIT_DONE;
}

/* Verify a folder by its path, or all checkpoints that are listed of a job. */
static int verify_run(const struct invocation *invocation, struct error *err)
{
    const char *what = invocation->arguments[0];
    Gimbal__GetJobReply *reply;
    if (named_path(what)) {
        int code = saved_is_one(what, err);
        return code == EXIT_DONE ? verify_folder(what, err) : code;
    }
    int code = client_get_job_once(&invocation->common, what, &reply, err);
    if (code != EXIT_DONE)
        return code;
    for (size_t i = 0; i < reply->n_checkpoints && code == EXIT_DONE; i++)
        code = verify_listed(invocation, what, reply->checkpoints[i]->folder, err);
    if (reply->n_checkpoints == 0 && !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", what);
    message_free(&reply->base);
    return code;
}

const struct command command_checkpoint_verify = {
    .name = "checkpoint verify",
    .summary = "Check everything in checkpoints against its checksums",
    .arguments = "JOB|DIRECTORY",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = verify_run,
};

struct export_values {
    struct saved_flags saved;
    int dtype;
};

static const char *const export_dtypes[] = {"f32", "bf16", NULL};

static const struct flag export_flags[] = {
    SAVED_FLAGS(struct export_values, saved),
    {"dtype", 0, FLAG_WORD, offsetof(struct export_values, dtype), "DTYPE",
     "what the weights are written in: f32 or bf16 (f32)", .words = export_dtypes},
    {.name = NULL},
};

static int export_run(const struct invocation *invocation, struct error *err)
{
    const struct export_values *values = invocation->values;
    struct saved saved;
    int code =
        saved_open(&invocation->common, &values->saved, invocation->arguments[0], &saved, err);
    if (code != EXIT_DONE)
        return code;
    const char *const words[] = {
        "--export-checkpoint",        saved.folder, "--out", invocation->arguments[1], "--dtype",
        export_dtypes[values->dtype], NULL};
    code = saved_read(words, saved.spec, "the export", err);
    saved_close(&saved);
    return code;
}

const struct command command_checkpoint_export = {
    .name = "checkpoint export",
    .summary = "Write the model of a checkpoint in the format of transformers",
    .arguments = "JOB|DIRECTORY OUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .flags = export_flags,
    .values_size = sizeof(struct export_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = export_run,
};

struct generate_values {
    struct saved_flags saved;
    const char *prompt, *temperature, *device;
    int64_t bytes, seed;
};

static const struct flag generate_flags[] = {
    SAVED_FLAGS(struct generate_values, saved),
    {"prompt", 'p', FLAG_TEXT, offsetof(struct generate_values, prompt), "TEXT",
     "the text to continue"},
    {"bytes", 'n', FLAG_NUMBER, offsetof(struct generate_values, bytes), "N",
     "how many bytes to write, the last token whole (200)", .standard = 200, .greatest = 1000000},
    {"temperature", 't', FLAG_TEXT, offsetof(struct generate_values, temperature), "NUMBER",
     "0: always take the likeliest token (0.8)"},
    {"seed", 0, FLAG_NUMBER, offsetof(struct generate_values, seed), "N",
     "the same seed gives the same text (1)", .standard = 1},
    {"device", 0, FLAG_TEXT, offsetof(struct generate_values, device), "DEVICE",
     "where to compute: cpu, cuda or cuda:GPU-6f0c... (cpu)"},
    {.name = NULL},
};

static int generate_check_temperature(const char *text, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= TEMPERATURE_MAX))
        return error_set(err, EXIT_USAGE, "--temperature '%s' is not a number from 0 to %d", text,
                         TEMPERATURE_MAX);
    return EXIT_DONE;
}

static int generate_write(const struct generate_values *values, const char *temperature,
                          const struct saved *saved, struct error *err)
{
    char bytes[24], seed[24];
    snprintf(bytes, sizeof bytes, "%" PRId64, values->bytes);
    snprintf(seed, sizeof seed, "%" PRId64, values->seed);
    const char *const words[] = {"--generate",
                                 saved->folder,
                                 "--prompt",
                                 values->prompt ? values->prompt : "",
                                 "--bytes",
                                 bytes,
                                 "--temperature",
                                 temperature,
                                 "--seed",
                                 seed,
                                 values->device ? "--device" : NULL,
                                 values->device,
                                 NULL};
    return saved_read(words, saved->spec, "the model", err);
}

static int generate_run(const struct invocation *invocation, struct error *err)
{
    const struct generate_values *values = invocation->values;
    struct saved saved;
    const char *temperature = values->temperature ? values->temperature : TEMPERATURE_STANDARD;
    int code = generate_check_temperature(temperature, err);
    if (code == EXIT_DONE)
        code =
            saved_open(&invocation->common, &values->saved, invocation->arguments[0], &saved, err);
    if (code != EXIT_DONE)
        return code;
    code = generate_write(values, temperature, &saved, err);
    saved_close(&saved);
    return code;
}

const struct command command_generate = {
    .name = "generate",
    .summary = "Continue a text with the model of a checkpoint",
    .arguments = "JOB|DIRECTORY",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = generate_flags,
    .values_size = sizeof(struct generate_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = generate_run,
};

static const struct command *const checkpoint_below[] = {
    &command_checkpoint_export, &command_checkpoint_list, &command_checkpoint_verify, NULL};

const struct command command_checkpoint = {
    .name = "checkpoint",
    .summary = "List, verify and export a job's checkpoints",
    .arguments = "list|verify|export ...",
    .below = checkpoint_below,
};
