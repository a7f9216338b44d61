/* measured.c - what a job has measured: `gimbal times JOB`, where the time of its steps goes, and
 * which of the figures that it was planned with are off; and `gimbal trace JOB`, one step beside
 * its prediction. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/perfetto.h"
#include "coordinator/cli/planned.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct column times_columns[] = {
    {.name = "BLOCK"},
    {.name = "INSTRUCTION"},
    {.name = "STEPS", .right = true},
    {.name = "A STEP", .right = true},
    {.name = "SHARE", .right = true},
    {.name = "PREDICTED", .right = true},
    {.name = "MEASURED/PREDICTED", .right = true},
};

/* Only the sum of all kernels has a prediction. */
static bool times_is_sum(const Gimbal__InstructionTimes *times)
{
    return times->predicted_seconds > 0;
}

/* Sums come first, then what takes longest. */
static int times_by_time(const void *first, const void *second)
{
    const Gimbal__InstructionTimes *a = *(Gimbal__InstructionTimes *const *)first;
    const Gimbal__InstructionTimes *b = *(Gimbal__InstructionTimes *const *)second;
    if (times_is_sum(a) != times_is_sum(b))
        return times_is_sum(a) ? -1 : 1;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

/* Seconds of all ranks together; sums are left out, since their kernels are counted one by one. */
static double times_whole_of(const Gimbal__GetJobReply *job)
{
    double seconds = 0;
    for (size_t i = 0; i < job->n_times; i++)
        seconds += times_is_sum(job->times[i]) ? 0 : job->times[i]->seconds;
    return seconds;
}

static void times_add_row(struct table *table, const Gimbal__InstructionTimes *times,
                          double whole_s)
{
    char text[32] = "";
    table_add(table, "%s", times->block_type);
    table_add(table, "%s", times->instruction);
    table_add(table, "%" PRIu64, times->count);
    table_add(table, "%s", units_print_seconds(text, sizeof text, times->median_seconds));
    if (times_is_sum(times)) {
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

static void times_print_table(const struct common *common, const Gimbal__GetJobReply *job)
{
    struct table *table = table_create(times_columns, sizeof times_columns / sizeof *times_columns);
    for (size_t i = 0; i < job->n_times; i++)
        times_add_row(table, job->times[i], times_whole_of(job));
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static void times_print_json(const struct common *common, const Gimbal__GetJobReply *job)
{
    json_t *items = json_array();
    for (size_t i = 0; i < job->n_times; i++)
        json_array_append_new(items, resource_times(job->times[i]));
    output_print_list((enum output)common->output, "InstructionTimesList", "times", items, stdout);
}

static int times_run(const struct invocation *invocation, struct error *err)
{
    const struct common *common = &invocation->common;
    const char *name = invocation->arguments[0];
    Gimbal__GetJobReply *job;
    int code = client_get_job_once(common, name, &job, err);
    if (code != EXIT_DONE)
        return code;
    if (job->n_times > 1)
        qsort(job->times, job->n_times, sizeof(Gimbal__InstructionTimes *), times_by_time);
    if (common->output >= OUTPUT_JSON)
        times_print_json(common, job);
    else if (job->n_times > 0)
        times_print_table(common, job);
    else if (!common->quiet)
        fprintf(stderr,
                "%s has reported no times yet: ranks do so every few seconds and when they end\n",
                name);
    message_free(&job->base);
    return EXIT_DONE;
}

const struct command command_times = {
    .name = "times",
    .summary = "Show where a job's time goes, instruction by instruction, beside the prediction",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = times_run,
};

/* A newer step may come while the ranks' parts of one are being fetched. */
#define TRIES 5

struct trace_values {
    const char *to;
};

static const struct flag trace_flags[] = {
    PERFETTO_FLAG(struct trace_values, to),
    {.name = NULL},
};

/* All ranks' parts of one step. */
struct traced {
    Gimbal__GetTraceReply **ranks;
    int count;
};

static void trace_forget(struct traced *traced)
{
    for (int i = 0; i < traced->count; i++)
        message_free((ProtobufCMessage *)traced->ranks[i]);
    free(traced->ranks);
    *traced = (struct traced){0};
}

static int trace_ask(struct client *client, const char *job, const struct planned *planned,
                     struct traced *out, struct error *err)
{
    Gimbal__GetTraceRequest request = GIMBAL__GET_TRACE_REQUEST__INIT;
    int ranks = plan_ranks(planned->plan), code = EXIT_DONE;
    *out = (struct traced){.ranks = xcalloc((size_t)ranks, sizeof(Gimbal__GetTraceReply *))};
    request.job = (char *)job;
    while (out->count < ranks) {
        ProtobufCMessage *message;
        request.rank = (uint32_t)out->count;
        code = client_call(client, COORDINATOR_GET_TRACE, &request.base, 0, &message, err);
        if (code != EXIT_DONE)
            return code;
        const Gimbal__GetTraceReply *reply = (const Gimbal__GetTraceReply *)message;
        out->ranks[out->count++] = (Gimbal__GetTraceReply *)message;
        request.step = reply->step;
        if (reply->epoch != planned->epoch || reply->rank_count != (uint32_t)ranks)
            return error_set(err, EXIT_AGAIN,
                             "the newest recorded step, %llu, is of epoch %llu, and %s is in "
                             "epoch %llu: try again when it has trained for a while",
                             (unsigned long long)reply->step, (unsigned long long)reply->epoch, job,
                             (unsigned long long)planned->epoch);
        if (reply->n_begin_ns != reply->n_end_ns)
            return error_set(err, EXIT_INTERNAL, "rank %u began %zu instructions and ended %zu",
                             request.rank, reply->n_begin_ns, reply->n_end_ns);
    }
    return EXIT_DONE;
}

static int trace_ask_again(struct client *client, const char *job, const struct planned *planned,
                           struct traced *out, struct error *err)
{
    int code = trace_ask(client, job, planned, out, err);
    for (int i = 1; i < TRIES && client->status == RPC_OUT_OF_RANGE; i++) {
        trace_forget(out);
        code = trace_ask(client, job, planned, out, err);
    }
    return code;
}

/* The ranks' clocks are those of their nodes: where they differ, the tracks are shifted. */
static void trace_write_measured(struct perfetto *perfetto, const struct traced *traced)
{
    uint64_t base_ns = UINT64_MAX;
    for (int i = 0; i < traced->count; i++)
        if (traced->ranks[i]->unix_ns < base_ns)
            base_ns = traced->ranks[i]->unix_ns;
    for (int i = 0; i < traced->count; i++) {
        const Gimbal__GetTraceReply *rank = traced->ranks[i];
        perfetto_measure(perfetto, i, rank->unix_ns - base_ns, rank->begin_ns, rank->end_ns,
                         rank->n_begin_ns);
        if (rank->n_begin_ns < rank->total)
            fprintf(stderr, "rank %d: only the first %zu instructions of %llu are there\n", i,
                    rank->n_begin_ns, (unsigned long long)rank->total);
    }
}

/* Without a prediction what was measured is still worth seeing. */
static int trace_write(const struct common *common, struct planned *planned,
                       const struct traced *traced, const char *path, struct error *err)
{
    struct perfetto perfetto;
    struct error why;
    int rc = perfetto_begin(&perfetto, planned, err);
    if (rc == 0 && (planned_rate(common, planned, &why) != EXIT_DONE ||
                    perfetto_predict(&perfetto, planned, &why) < 0))
        fprintf(stderr, "there is no prediction: %s\n", why.text);
    if (rc == 0) {
        trace_write_measured(&perfetto, traced);
        rc = perfetto_write(&perfetto, path, err);
    }
    perfetto_finish(&perfetto);
    if (rc == 0 && !common->quiet)
        fprintf(stderr, "step %llu of %d rank%s\n", (unsigned long long)traced->ranks[0]->step,
                traced->count, traced->count == 1 ? "" : "s");
    return exit_of_errno(rc);
}

static int trace_run(const struct invocation *invocation, struct error *err)
{
    const struct trace_values *values = invocation->values;
    const struct planned_flags none = {0};
    const char *job = invocation->arguments[0];
    struct client client = {0};
    struct planned planned;
    struct traced traced = {0};
    int code = planned_open(&invocation->common, &none, job, &planned, err);
    if (code == EXIT_DONE)
        code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = trace_ask_again(&client, job, &planned, &traced, err);
    client_close(&client);
    if (code == EXIT_DONE)
        code = trace_write(&invocation->common, &planned, &traced, values->to, err);
    trace_forget(&traced);
    planned_finish(&planned);
    return code;
}

const struct command command_trace = {
    .name = "trace",
    .summary =
        "Write the measured timeline of a step beside the predicted one, for Perfetto or Chrome",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = trace_flags,
    .values_size = sizeof(struct trace_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = trace_run,
};
