/* profile.c - `gimbal profile`: what devices were measured to do. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

static int run(const struct invocation *invocation, struct error *err)
{
    (void)invocation;
    return error_set(err, EXIT_USAGE, "needs a second word: run or show");
}

static const struct command *const below[] = {&command_profile_run, &command_profile_show, NULL};

const struct command command_profile = {
    .name = "profile",
    .summary = "Measure how fast devices are, and show what was measured",
    .arguments = "run|show ...",
    .below = below,
    .run = run,
};
