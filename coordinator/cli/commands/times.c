/* times.c - `gimbal times JOB`: where the time of a job's steps goes, and which of the figures that
 * it was planned with are off. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/units.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct column columns[] = {
    {.name = "BLOCK"},
    {.name = "INSTRUCTION"},
    {.name = "STEPS", .right = true},
    {.name = "A STEP", .right = true},
    {.name = "SHARE", .right = true},
    {.name = "PREDICTED", .right = true},
    {.name = "MEASURED/PREDICTED", .right = true},
};

/* Only the sum of all kernels has a prediction. */
static bool is_sum(const Gimbal__InstructionTimes *times)
{
    return times->predicted_seconds > 0;
}

/* Sums come first, then what takes longest. */
static int by_time(const void *first, const void *second)
{
    const Gimbal__InstructionTimes *a = *(Gimbal__InstructionTimes *const *)first;
    const Gimbal__InstructionTimes *b = *(Gimbal__InstructionTimes *const *)second;
    if (is_sum(a) != is_sum(b))
        return is_sum(a) ? -1 : 1;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

/* Seconds of all ranks together; sums are left out, since their kernels are counted one by one. */
static double whole_of(const Gimbal__GetJobReply *job)
{
    double seconds = 0;
    for (size_t i = 0; i < job->n_times; i++)
        seconds += is_sum(job->times[i]) ? 0 : job->times[i]->seconds;
    return seconds;
}

static void add_row(struct table *table, const Gimbal__InstructionTimes *times, double whole_s)
{
    char text[32] = "";
    table_add(table, "%s", times->block_type);
    table_add(table, "%s", times->instruction);
    table_add(table, "%" PRIu64, times->count);
    table_add(table, "%s", units_print_seconds(text, sizeof text, times->median_seconds));
    if (is_sum(times)) {
        table_add(table, "%s", "");
        table_add(table, "%s",
                  units_print_seconds(text, sizeof text,
                                      times->predicted_seconds / (double)times->count));
        table_add(table, "%.2f", times->median_ratio);
    } else {
        table_add(table, "%.1f %%", whole_s > 0 ? 100 * times->seconds / whole_s : 0);
        table_add(table, "%s", "");
        table_add(table, "%s", "");
    }
}

static void print_table(const struct common *common, const Gimbal__GetJobReply *job)
{
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < job->n_times; i++)
        add_row(table, job->times[i], whole_of(job));
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static void print_json(const struct common *common, const Gimbal__GetJobReply *job)
{
    json_t *items = json_array();
    for (size_t i = 0; i < job->n_times; i++)
        json_array_append_new(items, resource_times(job->times[i]));
    output_print_list((enum output)common->output, "InstructionTimesList", "times", items, stdout);
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct common *common = &invocation->common;
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    request.job = (char *)invocation->arguments[0];
    int code = client_call_once(common, COORDINATOR_GET_JOB, &request.base, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__GetJobReply *job = (const Gimbal__GetJobReply *)message;
    if (job->n_times > 1)
        qsort(job->times, job->n_times, sizeof(Gimbal__InstructionTimes *), by_time);
    if (common->output >= OUTPUT_JSON)
        print_json(common, job);
    else if (job->n_times > 0)
        print_table(common, job);
    else if (!common->quiet)
        fprintf(stderr,
                "%s has reported no times yet: ranks do so every few seconds and when they end\n",
                request.job);
    message_free(message);
    return EXIT_DONE;
}

const struct command command_times = {
    .name = "times",
    .summary = "Show where a job's time goes, instruction by instruction, beside the prediction",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
