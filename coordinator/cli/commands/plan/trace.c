/* trace.c - `gimbal plan trace`: a step as the plan's simulation sees it, for a viewer. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/perfetto.h"
#include "coordinator/cli/planned.h"

struct trace_values {
    struct planned_flags from;
    const char *to;
};

static const struct flag trace_flags[] = {
    PLANNED_FLAGS(struct trace_values, from),
    PERFETTO_FLAG(struct trace_values, to),
    {.name = NULL},
};

static int write(const struct planned *planned, const char *path, struct error *err)
{
    struct perfetto perfetto;
    int rc = perfetto_begin(&perfetto, planned, err);
    if (rc == 0)
        rc = perfetto_predict(&perfetto, planned, err);
    if (rc == 0)
        rc = perfetto_write(&perfetto, path, err);
    perfetto_finish(&perfetto);
    return exit_of_errno(rc);
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct trace_values *values = invocation->values;
    const char *job;
    struct planned planned = {0};
    int code = planned_job(invocation, &job, err);
    if (code == EXIT_DONE)
        code = planned_open(&invocation->common, &values->from, job, &planned, err);
    if (code == EXIT_DONE)
        code = planned_rate(&invocation->common, &planned, err);
    if (code == EXIT_DONE)
        code = write(&planned, values->to, err);
    planned_finish(&planned);
    return code;
}

const struct command command_plan_trace = {
    .name = "plan trace",
    .summary = "Write the predicted timeline of a step, for Perfetto or Chrome",
    .arguments = "[JOB]",
    .arguments_max = 1,
    .flags = trace_flags,
    .values_size = sizeof(struct trace_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
