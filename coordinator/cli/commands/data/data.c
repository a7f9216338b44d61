/* data.c - `gimbal data`: what jobs learn from. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

static int run(const struct invocation *invocation, struct error *err)
{
    (void)invocation;
    return error_set(err, EXIT_USAGE, "needs a subcommand: pack or show");
}

static const struct command *const below[] = {&command_data_pack, &command_data_show, NULL};

const struct command command_data = {
    .name = "data",
    .summary = "Prepare and check the data that jobs learn from",
    .arguments = "pack|show ...",
    .below = below,
    .run = run,
};
