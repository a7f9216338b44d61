/* show.c - `gimbal profile show`: what is kept of this machine, or what nodes have reported. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/profile/measured.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/machine.h"

struct show_values {
    int64_t local;
};

static const struct flag show_flags[] = {
    {"local", 0, FLAG_NUMBER, offsetof(struct show_values, local), "N",
     "this machine divided into N devices, as for 'gimbal plan --local N'", .least = 1,
     .greatest = MACHINE_DEVICES_MAX},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct show_values *values = invocation->values;
    const struct common *common = &invocation->common;
    struct measured measured = {0};
    bool there = invocation->argument_count > 0;
    if (there && values->local)
        return error_set(err, EXIT_USAGE, "either a NODE, or --local N for this machine: not both");
    if (!there && common->given & (TAKES_ADDRESS | TAKES_TIMEOUT))
        return error_set(err, EXIT_USAGE, "a coordinator is asked for a NODE: name one");
    int code = there ? measured_there(invocation, &measured, err)
                     : measured_here((int)values->local, &measured, err);
    if (code == EXIT_DONE)
        measured_print(common, &measured, stdout);
    measured_finish(&measured);
    return code;
}

const struct command command_profile_show = {
    .name = "profile show",
    .summary = "Show the measured profile of this machine or of nodes",
    .arguments = "[NODE ...]",
    .arguments_max = NAMED_MAX,
    .flags = show_flags,
    .values_size = sizeof(struct show_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
