/* events.c - `gimbal events [JOB]`: what happened, and with -w what happens. */
#include "coordinator/cli/events.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include "common/message/message.h"

#include <string.h>
#include <unistd.h>

struct events_printing {
    enum output output;
    const char *job; /* NULL: all */
    bool verbose;    /* also steps */
    json_t *list;    /* for -o json */
};

static bool events_take(void *data, const Gimbal__Event *event)
{
    struct events_printing *printing = data;
    if (printing->job && strcmp(event->job, printing->job) != 0)
        return false;
    if (printing->output == OUTPUT_JSON)
        json_array_append_new(printing->list, resource_event(event));
    else if (printing->output == OUTPUT_JSONL)
        output_print_object(OUTPUT_JSONL, resource_event(event), stdout);
    else if (printing->verbose || strcmp(event->kind, "step") != 0)
        history_print(event, stdout);
    fflush(stdout);
    return false;
}

/* Events of a job that is not there would never come, so such a job is an error. */
static int events_check_job(struct client *client, const char *job, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = job ? client_get_job(client, job, &reply, err) : EXIT_DONE;
    if (job && code == EXIT_DONE)
        message_free(&reply->base);
    return code;
}

static int events_follow(const struct invocation *invocation, struct events_printing *printing,
                         struct error *err)
{
    struct client client = {0};
    int signals = signals_open(err);
    if (signals < 0)
        return EXIT_INTERNAL;
    int code = client_open(&invocation->common, &client, err);
    struct history_options options = {.client = &client,
                                      .job = printing->job,
                                      .signals = signals,
                                      .end_fd = -1,
                                      .prints = true,
                                      .timeout_s = invocation->common.timeout_s};
    if (code == EXIT_DONE)
        code = events_check_job(&client, printing->job, err);
    if (code == EXIT_DONE)
        code = history_follow(&options, events_take, printing, err);
    client_close(&client);
    close(signals);
    return code;
}

static int events_run(const struct invocation *invocation, struct error *err)
{
    struct client client = {0};
    struct events_printing printing = {
        .output = (enum output)invocation->common.output,
        .job = invocation->argument_count ? invocation->arguments[0] : NULL,
        .verbose = invocation->common.verbose || invocation->common.output == OUTPUT_WIDE};
    if (invocation->common.watch && printing.output == OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "-o json prints a single object: with -w use -o jsonl");
    if (invocation->common.watch)
        return events_follow(invocation, &printing, err);
    printing.list = json_array();
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = events_check_job(&client, printing.job, err);
    if (code == EXIT_DONE)
        code = history_read(&client, printing.job, events_take, &printing, err);
    client_close(&client);
    if (code == EXIT_DONE && printing.output == OUTPUT_JSON)
        output_print_list(OUTPUT_JSON, "EventList", "events", printing.list, stdout);
    else
        json_decref(printing.list);
    return code;
}

const struct command command_events = {
    .name = "events",
    .summary = "Print what happened in the cluster or to a job (-v: every step)",
    .arguments = "[JOB]",
    .arguments_max = 1,
    .takes = TAKES_OUTPUT | TAKES_WATCH | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = events_run,
};
