/* config.c - `gimbal config`: what the programs are set to. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

static int run(const struct invocation *invocation, struct error *err)
{
    (void)invocation;
    return error_set(err, EXIT_USAGE, "needs a second word: show");
}

static const struct command *const below[] = {&command_config_show, NULL};

const struct command command_config = {
    .name = "config",
    .summary = "Show the settings of coordinator, worker and this command",
    .arguments = "show ...",
    .below = below,
    .run = run,
};
