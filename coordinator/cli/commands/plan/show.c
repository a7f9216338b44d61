/* show.c - `gimbal plan show`: a plan as it is, or the program that it gives to a rank. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/planned.h"
#include "coordinator/cli/tables/plantable.h"

#include "common/program/program.h"

struct show_values {
    struct planned_flags from;
    bool program;
    int64_t rank; /* -1: not given */
};

static const struct flag show_flags[] = {
    PLANNED_FLAGS(struct show_values, from),
    {"program", 0, FLAG_SWITCH, offsetof(struct show_values, program), NULL,
     "show what a rank does in a step: its instructions and their buffers"},
    {"rank", 0, FLAG_NUMBER, offsetof(struct show_values, rank), "N", "the rank (0)",
     .standard = -1},
    {.name = NULL},
};

static int show_program(const struct planned *planned, int64_t rank, struct error *err)
{
    struct program *program;
    int code = planned_lower(planned, rank, &program, err);
    if (code == EXIT_DONE) {
        program_print(program, stdout);
        program_destroy(program);
    }
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct show_values *values = invocation->values;
    const char *job;
    enum output output = (enum output)invocation->common.output;
    struct planned planned = {0};
    if (values->rank >= 0 && !values->program)
        return error_set(err, EXIT_USAGE, "--rank needs --program");
    if (values->program && output >= OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "a program is printed as text: leave out --output");
    int code = planned_job(invocation, &job, err);
    if (code == EXIT_DONE)
        code = planned_open(&invocation->common, &values->from, job, &planned, err);
    if (code == EXIT_DONE && values->program)
        code = show_program(&planned, values->rank < 0 ? 0 : values->rank, err);
    else if (code == EXIT_DONE && output >= OUTPUT_JSON)
        output_print_text(output, planned.json, stdout); /* the text that it was decoded from */
    else if (code == EXIT_DONE)
        code = exit_of_errno(plantable_print(&invocation->common, &planned, stdout, err));
    planned_finish(&planned);
    return code;
}

const struct command command_plan_show = {
    .name = "plan show",
    .summary = "Show a plan block by block, or what a rank does in a step",
    .arguments = "[JOB]",
    .arguments_max = 1,
    .flags = show_flags,
    .values_size = sizeof(struct show_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
