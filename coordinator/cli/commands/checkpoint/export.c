/* export.c - `gimbal checkpoint export`: the model of a checkpoint in the form that the package
 * transformers reads. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/checkpoint/saved.h"
#include "coordinator/cli/exit.h"

struct export_values {
    struct saved_flags saved;
};

static const struct flag export_flags[] = {
    SAVED_FLAGS(struct export_values, saved),
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct export_values *values = invocation->values;
    struct saved saved;
    int code =
        saved_open(&invocation->common, &values->saved, invocation->arguments[0], &saved, err);
    if (code != EXIT_DONE)
        return code;
    const char *const words[] = {
        "--export-checkpoint",    saved.folder, "--job", saved.job, "--out",
        invocation->arguments[1], NULL};
    code = saved_read(words, saved.keep, "the export", err);
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
    .run = run,
};
