/* logs.c - `gimbal logs JOB`: what its ranks printed. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobtable.h"

#include "common/rpc/message.h"

#include <string.h>

#define LINES_MAX 500
#define FOLLOW_PAUSE_MS 500

struct logs_values {
    bool follow;
    int64_t rank; /* -1: all */
};

static const struct flag logs_flags[] = {
    {"follow", 'f', FLAG_SWITCH, offsetof(struct logs_values, follow), NULL,
     "go on until the job is over"},
    {"rank", 0, FLAG_NUMBER, offsetof(struct logs_values, rank), "R", "only this rank",
     .standard = -1},
    {.name = NULL},
};

static void print_line(enum output output, const Gimbal__LogLine *line)
{
    bool plain = !line->level[0] || strcmp(line->level, "info") == 0;
    if (output >= OUTPUT_JSON)
        output_print_object(
            OUTPUT_JSONL,
            output_object("LogLine",
                          json_pack("{s:f, s:I, s:I, s:s, s:s}", "unix_s",
                                    (double)line->unix_us / 1e6, "rank", (json_int_t)line->rank,
                                    "epoch", (json_int_t)line->epoch, "level", line->level, "text",
                                    line->text)),
            stdout);
    else
        printf("[%u] %s%s%s\n", line->rank, plain ? "" : line->level, plain ? "" : ": ",
               line->text);
}

/* All lines behind *after; *count is how many came. */
static int print_more(struct client *client, enum output output, Gimbal__GetLogsRequest *request,
                      uint32_t delay_ms, size_t *count, struct error *err)
{
    ProtobufCMessage *message;
    int code = client_call(client, COORDINATOR_GET_LOGS, &request->base, delay_ms, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__GetLogsReply *reply = (const Gimbal__GetLogsReply *)message;
    for (size_t i = 0; i < reply->n_lines; i++)
        print_line(output, reply->lines[i]);
    *count = reply->n_lines;
    if (reply->last > request->after)
        request->after = reply->last;
    message_free(message);
    fflush(stdout);
    return EXIT_DONE;
}

static int job_is_over(struct client *client, const char *job, bool *over, struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    request.job = (char *)job;
    int code = client_call(client, COORDINATOR_GET_JOB, &request.base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__GetJobReply *reply = (const Gimbal__GetJobReply *)message;
    *over = !reply->status || jobtable_is_final(reply->status->state);
    message_free(message);
    return EXIT_DONE;
}

static int print_logs(struct client *client, const struct invocation *invocation, struct error *err)
{
    const struct logs_values *values = invocation->values;
    Gimbal__GetLogsRequest request = GIMBAL__GET_LOGS_REQUEST__INIT;
    enum output output = (enum output)invocation->common.output;
    size_t count = 0;
    bool over = false;
    request.job = invocation->arguments[0];
    request.rank = (int32_t)values->rank;
    request.count_max = LINES_MAX;
    int code = EXIT_DONE;
    uint32_t delay_ms = 0;
    do { /* first whether it is over, then the lines: so the last ones are not missed */
        if (values->follow && count == 0)
            code = job_is_over(client, request.job, &over, err);
        if (code == EXIT_DONE)
            code = print_more(client, output, &request, delay_ms, &count, err);
        delay_ms = count == 0 && !over ? FOLLOW_PAUSE_MS : 0;
    } while (code == EXIT_DONE && (count > 0 || (values->follow && !over)));
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    struct client client = {0};
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = print_logs(&client, invocation, err);
    client_close(&client);
    return code;
}

const struct command command_logs = {
    .name = "logs",
    .summary = "Print what the ranks of a job said",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = logs_flags,
    .values_size = sizeof(struct logs_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
