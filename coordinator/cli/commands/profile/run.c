/* run.c - `gimbal profile run`: measure this machine now, for the plans of the next days. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/profile/measured.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/machine.h"

#include <errno.h>

struct run_values {
    int64_t local;
};

static const struct flag run_flags[] = {
    {"local", 0, FLAG_NUMBER, offsetof(struct run_values, local), "N",
     "how many devices to divide this machine's cores into, as for 'gimbal plan --local N' (1)",
     .least = 1, .standard = 1, .greatest = MACHINE_DEVICES_MAX},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct run_values *values = invocation->values;
    struct machine local;
    struct measured measured = {0};
    int rc = machine_open((int)values->local, NULL, true, &local, err);
    int code = rc == -ENOENT ? EXIT_CONFIGURATION : exit_of_errno(rc);
    if (code == EXIT_DONE && local.note[0])
        code = error_set(err, EXIT_IO, "%s", local.note);
    if (code == EXIT_DONE)
        code = measured_here((int)values->local, &measured, err);
    if (code == EXIT_DONE)
        measured_print(&invocation->common, &measured, stdout);
    measured_finish(&measured);
    machine_finish(&local);
    return code;
}

const struct command command_profile_run = {
    .name = "profile run",
    .summary = "Measure this machine's cores now, and keep the result",
    .arguments = "",
    .flags = run_flags,
    .values_size = sizeof(struct run_values),
    .takes = TAKES_OUTPUT,
    .run = run,
};
