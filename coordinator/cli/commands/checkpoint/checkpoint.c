/* checkpoint.c - `gimbal checkpoint`: what a job has saved. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

static int run(const struct invocation *invocation, struct error *err)
{
    (void)invocation;
    return error_set(err, EXIT_USAGE, "needs a subcommand: list, verify or export");
}

static const struct command *const below[] = {&command_checkpoint_export, &command_checkpoint_list,
                                              &command_checkpoint_verify, NULL};

const struct command command_checkpoint = {
    .name = "checkpoint",
    .summary = "List, verify and export a job's checkpoints",
    .arguments = "list|verify|export ...",
    .below = below,
    .run = run,
};
