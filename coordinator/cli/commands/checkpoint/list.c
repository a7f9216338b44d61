/* list.c - `gimbal checkpoint list`: what a job can go on from. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/checkpoint/saved.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/units.h"

#include <inttypes.h>
#include <time.h>

static void print_list(const struct common *common, const Gimbal__GetJobReply *job)
{
    json_t *items = json_array();
    for (size_t i = 0; i < job->n_checkpoints; i++)
        json_array_append_new(items, resource_checkpoint(job->checkpoints[i]));
    output_print_list((enum output)common->output, "CheckpointList", "checkpoints", items, stdout);
}

static const char *print_time(char *out, size_t size, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(out, size, "%Y-%m-%d %H:%M:%S", &local);
    return out;
}

static void print_table(const struct common *common, const Gimbal__GetJobReply *job)
{
    static const struct column columns[] = {
        {.name = "STEP", .right = true},
        {.name = "EPOCH", .right = true},
        {.name = "SIZE", .right = true},
        {.name = "LISTED"},
        {.name = "STATE"},
        {.name = "FOLDER"},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        const Gimbal__Checkpoint *checkpoint = job->checkpoints[i];
        char size[32], when[32];
        table_add(table, "%" PRIu64, checkpoint->step);
        table_add(table, "%" PRIu64, checkpoint->epoch);
        table_add(table, "%s", units_print_bytes(size, sizeof size, (double)checkpoint->bytes));
        table_add(table, "%s", print_time(when, sizeof when, checkpoint->unix_ms));
        table_add(table, "%s", checkpoint->damaged ? "damaged" : "");
        table_add(table, "%s", checkpoint->folder);
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static int run(const struct invocation *invocation, struct error *err)
{
    const char *job = invocation->arguments[0];
    Gimbal__GetJobReply *reply;
    int code = saved_ask(&invocation->common, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (invocation->common.output >= OUTPUT_JSON)
        print_list(&invocation->common, reply);
    else
        print_table(&invocation->common, reply);
    if (reply->n_checkpoints == 0 && invocation->common.output < OUTPUT_JSON &&
        !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", job);
    message_free(&reply->base);
    return EXIT_DONE;
}

const struct command command_checkpoint_list = {
    .name = "checkpoint list",
    .summary = "List the checkpoints of a job",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
