/* logs.c - `gimbal logs JOB`: what its ranks printed. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/tables.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX 500
#define FOLLOW_PAUSE_MS 500

struct logs_values {
    bool follow;
    int64_t rank; /* -1: all */
    int64_t tail; /* only this many of the existing lines; -1: all */
};

static const struct flag logs_flags[] = {
    {"follow", 'f', FLAG_SWITCH, offsetof(struct logs_values, follow), NULL,
     "keep printing until the job ends"},
    {"rank", 0, FLAG_NUMBER, offsetof(struct logs_values, rank), "R", "only this rank",
     .standard = -1, .greatest = PLAN_RANKS_MAX - 1},
    {"tail", 'n', FLAG_NUMBER, offsetof(struct logs_values, tail), "N", "only the last N lines",
     .standard = -1, .greatest = INT32_MAX},
    {.name = NULL},
};

struct reading {
    struct client *client;
    const struct common *common;
    Gimbal__GetLogsRequest request;
    uint64_t term; /* term of the coordinator that numbered the lines */
    size_t count;  /* lines in the reply to the last call */
    bool begun;    /* a line has come */
    json_t *list;  /* for -o json */
    /* Pages with existing lines, kept while they come in if only the last lines are wanted. */
    int64_t tail; /* -1: all are */
    ProtobufCMessage **pages;
    size_t page_count, page_capacity, lines;
};

static json_t *logs_line_json(const Gimbal__LogLine *line)
{
    return resource_object(
        "LogLine", json_pack("{s:f, s:I, s:I, s:s, s:s}", "unix_s", (double)line->unix_us / 1e6,
                             "rank", (json_int_t)line->rank, "epoch", (json_int_t)line->epoch,
                             "level", line->level, "text", line->text));
}

static void logs_print_line(const struct reading *reading, const Gimbal__LogLine *line)
{
    bool plain = !line->level[0] || strcmp(line->level, "info") == 0;
    if (reading->common->output == OUTPUT_JSON)
        json_array_append_new(reading->list, logs_line_json(line));
    else if (reading->common->output == OUTPUT_JSONL)
        output_print_object(OUTPUT_JSONL, logs_line_json(line), stdout);
    else
        printf("[%u] %s%s%s\n", line->rank, plain ? "" : line->level, plain ? "" : ": ",
               line->text);
}

static void logs_print_page(const struct reading *reading, const Gimbal__GetLogsReply *page,
                            size_t first)
{
    for (size_t i = first; i < page->n_lines; i++)
        logs_print_line(reading, page->lines[i]);
    fflush(stdout);
}

/* Print the last of the existing lines; from then on lines are printed as they come. */
static void logs_print_tail(struct reading *reading)
{
    size_t left_out =
        reading->lines > (size_t)reading->tail ? reading->lines - (size_t)reading->tail : 0;
    for (size_t i = 0; i < reading->page_count; i++) {
        const Gimbal__GetLogsReply *page = (const Gimbal__GetLogsReply *)reading->pages[i];
        size_t first = left_out < page->n_lines ? left_out : page->n_lines;
        logs_print_page(reading, page, first);
        left_out -= first;
    }
    reading->tail = -1;
}

/* A coordinator numbers lines from its start and keeps only the newest. If the numbers have become
 * useless, begin with the first line that there is. */
static void logs_begin_again(struct reading *reading, struct error *err)
{
    err->text[0] = '\0';
    if (!reading->common->quiet)
        fputs("lines are missing here: the coordinator no longer has them\n", stderr);
    reading->request.after = 0;
    reading->term = rpc_client_term(reading->client->rpc);
}

/* Takes ownership of the message. */
static void logs_take_lines(struct reading *reading, ProtobufCMessage *message)
{
    const Gimbal__GetLogsReply *reply = (const Gimbal__GetLogsReply *)message;
    reading->count = reply->n_lines;
    reading->begun = reading->begun || reply->n_lines > 0;
    if (reply->last > reading->request.after)
        reading->request.after = reply->last;
    if (reading->tail >= 0) {
        reading->pages = grow(reading->pages, reading->page_count, &reading->page_capacity,
                              sizeof(ProtobufCMessage *));
        reading->pages[reading->page_count++] = message;
        reading->lines += reply->n_lines;
        if (reading->count == 0)
            logs_print_tail(reading);
        return;
    }
    logs_print_page(reading, reply, 0);
    message_free(message);
}

/* Fetch the lines after those that were read, as many as come at once. */
static int logs_print_more(struct reading *reading, uint32_t delay_ms, struct error *err)
{
    struct client *client = reading->client;
    ProtobufCMessage *message = NULL;
    int code =
        client_call(client, COORDINATOR_GET_LOGS, &reading->request.base, delay_ms, &message, err);
    bool anew = reading->request.after > 0 && rpc_client_term(client->rpc) != reading->term;
    if (client->status == RPC_OUT_OF_RANGE || (code == EXIT_DONE && anew)) {
        message_free(message);
        message = NULL;
        logs_begin_again(reading, err);
        code = client_call(client, COORDINATOR_GET_LOGS, &reading->request.base, 0, &message, err);
    }
    if (code != EXIT_DONE)
        return code;
    reading->term = rpc_client_term(client->rpc);
    logs_take_lines(reading, message);
    return EXIT_DONE;
}

static int logs_job_is_over(struct client *client, const char *job, bool *over, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = client_get_job(client, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    *over = !reply->status || resource_job_is_over(reply->status->state);
    message_free(&reply->base);
    return EXIT_DONE;
}

/* Nothing has come from the rank: check that the plan, if there is one, has it. */
static int logs_check_rank(const struct reading *reading, struct error *err)
{
    const char *job = reading->request.job;
    Gimbal__GetJobReply *reply;
    struct plan *plan = NULL;
    int code = client_get_job(reading->client, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (reply->plan && plan_decode(reply->plan->json, &plan, NULL) == 0 &&
        reading->request.rank >= plan_ranks(plan))
        code = error_set(err, EXIT_INPUT, "%s has no rank %d: its ranks are 0 to %d", job,
                         reading->request.rank, plan_ranks(plan) - 1);
    plan_destroy(plan);
    message_free(&reply->base);
    return code;
}

static int logs_check_reader(void)
{
    struct pollfd reader = reader_poll();
    poll(&reader, 1, 0);
    return reader_code(&reader);
}

static int logs_print_logs(struct reading *reading, bool follow, struct error *err)
{
    bool over = false;
    int code = logs_print_more(reading, 0, err);
    if (code == EXIT_DONE && !reading->begun && reading->request.rank >= 0)
        code = logs_check_rank(reading, err);
    /* First ask whether the job is over, then for lines, so that the last ones are not missed. */
    while (code == EXIT_DONE && (reading->count > 0 || (follow && !over))) {
        if (follow && reading->count == 0)
            code = logs_job_is_over(reading->client, reading->request.job, &over, err);
        if (code == EXIT_DONE)
            code = logs_check_reader();
        if (code == EXIT_DONE)
            code =
                logs_print_more(reading, reading->count == 0 && !over ? FOLLOW_PAUSE_MS : 0, err);
    }
    return code;
}

static void logs_explain_none(const struct reading *reading)
{
    if (reading->common->output >= OUTPUT_JSON || reading->common->quiet)
        return;
    if (reading->request.rank >= 0)
        fprintf(stderr, "%s has no log lines of rank %d\n", reading->request.job,
                reading->request.rank);
    else
        fprintf(stderr, "%s has no log lines\n", reading->request.job);
}

static int logs_run(const struct invocation *invocation, struct error *err)
{
    const struct logs_values *values = invocation->values;
    struct client client = {0};
    struct reading reading = {.client = &client,
                              .common = &invocation->common,
                              .tail = values->tail,
                              .request = GIMBAL__GET_LOGS_REQUEST__INIT};
    if (values->follow && invocation->common.output == OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "--follow prints lines one by one: use -o jsonl");
    reading.list = json_array();
    reading.request.job = invocation->arguments[0];
    reading.request.rank = (int32_t)values->rank;
    reading.request.count_max = LINES_MAX;
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = logs_print_logs(&reading, values->follow, err);
    if (code == EXIT_DONE && !reading.begun)
        logs_explain_none(&reading);
    if (code == EXIT_DONE && invocation->common.output == OUTPUT_JSON)
        output_print_list(OUTPUT_JSON, "LogLineList", "lines", json_incref(reading.list), stdout);
    json_decref(reading.list);
    client_close(&client);
    for (size_t i = 0; i < reading.page_count; i++)
        message_free(reading.pages[i]);
    free(reading.pages);
    return code;
}

const struct command command_logs = {
    .name = "logs",
    .summary = "Print what the ranks of a job logged",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = logs_flags,
    .values_size = sizeof(struct logs_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = logs_run,
};
