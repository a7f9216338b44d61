/* trace.c - `gimbal trace JOB`: a measured step beside its prediction. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/perfetto.h"
#include "coordinator/cli/planned.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <stdlib.h>

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
struct measured {
    Gimbal__GetTraceReply **ranks;
    int count;
};

static void forget(struct measured *measured)
{
    for (int i = 0; i < measured->count; i++)
        message_free((ProtobufCMessage *)measured->ranks[i]);
    free(measured->ranks);
    *measured = (struct measured){0};
}

static int ask(struct client *client, const char *job, const struct planned *planned,
               struct measured *out, struct error *err)
{
    Gimbal__GetTraceRequest request = GIMBAL__GET_TRACE_REQUEST__INIT;
    int ranks = plan_ranks(planned->plan), code = EXIT_DONE;
    *out = (struct measured){.ranks = xcalloc((size_t)ranks, sizeof(Gimbal__GetTraceReply *))};
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

static int ask_again(struct client *client, const char *job, const struct planned *planned,
                     struct measured *out, struct error *err)
{
    int code = ask(client, job, planned, out, err);
    for (int i = 1; i < TRIES && client->status == RPC_OUT_OF_RANGE; i++) {
        forget(out);
        code = ask(client, job, planned, out, err);
    }
    return code;
}

/* The ranks' clocks are those of their nodes: where they differ, the tracks are shifted. */
static void write_measured(struct perfetto *perfetto, const struct measured *measured)
{
    uint64_t base_ns = UINT64_MAX;
    for (int i = 0; i < measured->count; i++)
        if (measured->ranks[i]->unix_ns < base_ns)
            base_ns = measured->ranks[i]->unix_ns;
    for (int i = 0; i < measured->count; i++) {
        const Gimbal__GetTraceReply *rank = measured->ranks[i];
        perfetto_measure(perfetto, i, rank->unix_ns - base_ns, rank->begin_ns, rank->end_ns,
                         rank->n_begin_ns);
        if (rank->n_begin_ns < rank->total)
            fprintf(stderr, "rank %d: only the first %zu instructions of %llu are there\n", i,
                    rank->n_begin_ns, (unsigned long long)rank->total);
    }
}

/* Without a prediction what was measured is still worth seeing. */
static int write(const struct common *common, struct planned *planned,
                 const struct measured *measured, const char *path, struct error *err)
{
    struct perfetto perfetto;
    struct error why;
    int rc = perfetto_begin(&perfetto, planned, err);
    if (rc == 0 && (planned_rate(common, planned, &why) != EXIT_DONE ||
                    perfetto_predict(&perfetto, planned, &why) < 0))
        fprintf(stderr, "there is no prediction: %s\n", why.text);
    if (rc == 0) {
        write_measured(&perfetto, measured);
        rc = perfetto_write(&perfetto, path, err);
    }
    perfetto_finish(&perfetto);
    if (rc == 0 && !common->quiet)
        fprintf(stderr, "step %llu of %d rank%s\n", (unsigned long long)measured->ranks[0]->step,
                measured->count, measured->count == 1 ? "" : "s");
    return exit_of_errno(rc);
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct trace_values *values = invocation->values;
    const struct planned_flags none = {0};
    const char *job = invocation->arguments[0];
    struct client client = {0};
    struct planned planned;
    struct measured measured = {0};
    int code = planned_open(&invocation->common, &none, job, &planned, err);
    if (code == EXIT_DONE)
        code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = ask_again(&client, job, &planned, &measured, err);
    client_close(&client);
    if (code == EXIT_DONE)
        code = write(&invocation->common, &planned, &measured, values->to, err);
    forget(&measured);
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
    .run = run,
};
