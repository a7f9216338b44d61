/* drill.c - `gimbal drill JOB FAULT`: a rehearsal. The coordinator has a worker inflict the fault
 * on the running job, and the consequences are followed until the job has finished its next step:
 * phases and lost steps, or an exit status that is not 0. A fault that lasts for a time need not
 * cost the job anything: it is followed until it is over, the node is back if it was lost, and the
 * job has finished a step after that. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "common/plan/plan.h"
#include "coordinator/resources/drills.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S 120.0
#define FOR_S_STANDARD 10.0

struct drill_values {
    int64_t rank;
    const char *node;
    double for_s, delay_s; /* 0: not given */
};

static const struct flag drill_flags[] = {
    {"rank", 'r', FLAG_NUMBER, offsetof(struct drill_values, rank), "NUMBER",
     "the rank to hit (the job's last)", .standard = -1, .greatest = PLAN_RANKS_MAX - 1},
    {"node", 'n', FLAG_TEXT, offsetof(struct drill_values, node), "NODE",
     "the node to hit, in place of a rank"},
    {"for", 0, FLAG_TIME, offsetof(struct drill_values, for_s), "TIME",
     "how long cut-link, slow-link or fill-disk lasts (10s)", .greatest = DRILL_FOR_S_MAX},
    {"delay", 0, FLAG_TIME, offsetof(struct drill_values, delay_s), "TIME",
     "slow-link: how late every message is", .greatest = DRILL_DELAY_S_MAX},
    {.name = NULL},
};

struct rehearsal {
    const char *job;
    enum output output;
    uint64_t since_ms;             /* when the fault was ordered, by the coordinator's clock */
    uint64_t over_ms;              /* when it ends by itself; 0: it is done at once */
    char node[HARDWARE_NAME_SIZE]; /* where it was done */
    bool away;                     /* that node is suspected or lost */
    bool back;
};

/* The node's name is lent to the request. */
static int drill_make_request(const struct invocation *invocation, Gimbal__DrillRequest *request,
                              struct error *err)
{
    const struct drill_values *values = invocation->values;
    if (values->node && values->rank >= 0)
        return error_set(err, EXIT_USAGE, "write either --rank or --node");
    if (drill_find(invocation->arguments[1], &request->fault, err) < 0)
        return EXIT_USAGE;
    const struct drill_fault *fault = drill_fault(request->fault);
    double for_s = values->for_s > 0 ? values->for_s : fault->lasts ? FOR_S_STANDARD : 0;
    request->job = invocation->arguments[0];
    request->rank = (uint32_t)(values->rank + 1);
    request->node = (char *)(values->node ? values->node : "");
    request->for_ms = (uint32_t)lround(for_s * 1e3);
    request->delay_ms = (uint32_t)lround(values->delay_s * 1e3);
    if (fault->delays && request->delay_ms == 0)
        return error_set(err, EXIT_USAGE, "%s needs --delay, as in --delay 200ms", fault->name);
    if (drill_check_times(fault, request->for_ms, request->delay_ms, err) < 0)
        return EXIT_USAGE;
    return EXIT_DONE;
}

static void drill_print_phases(const Gimbal__Event *event)
{
    static const char *const phases[] = {"quiesce_s", "wait_s", "plan_s", "start_s",
                                         "prepare_s", "move_s", "step_s", "total_s"};
    json_t *json = json_loads(event->json, 0, NULL);
    printf("steps lost     %lld\n",
           (long long)json_integer_value(json_object_get(json, "steps_lost")));
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        printf("%-14.*s %.0f ms\n", (int)strlen(phases[i]) - 2, phases[i],
               1e3 * json_real_value(json_object_get(json, phases[i])));
    json_decref(json);
}

/* Is the event about the job, or about the node, while a fault lasts there? */
static bool drill_concerns(const struct rehearsal *rehearsal, const Gimbal__Event *event)
{
    if (event->unix_ms < rehearsal->since_ms)
        return false;
    if (event->job[0])
        return strcmp(event->job, rehearsal->job) == 0;
    return rehearsal->over_ms > 0 && strcmp(event->node, rehearsal->node) == 0;
}

/* Note what the event says about the node. */
static void drill_follow_node(struct rehearsal *rehearsal, const char *kind)
{
    if (strcmp(kind, "node-suspected") == 0 || strcmp(kind, "node-lost") == 0)
        rehearsal->away = true;
    else if (strcmp(kind, "node-recovered") == 0 || strcmp(kind, "node-joined") == 0)
        rehearsal->away = false;
}

static void drill_print_event(const struct rehearsal *rehearsal, const Gimbal__Event *event,
                              bool phases)
{
    if (rehearsal->output == OUTPUT_JSONL)
        output_print_object(OUTPUT_JSONL, resource_event(event), stdout);
    else
        history_print(event, stdout);
    if (phases && rehearsal->output != OUTPUT_JSONL)
        drill_print_phases(event);
    fflush(stdout);
}

static bool drill_take(void *data, const Gimbal__Event *event)
{
    struct rehearsal *rehearsal = data;
    if (!drill_concerns(rehearsal, event))
        return false;
    bool steps = strcmp(event->kind, "step") == 0;
    bool again =
        strcmp(event->kind, "job-replanned") == 0 || strcmp(event->kind, "job-restarted") == 0;
    drill_follow_node(rehearsal, event->kind);
    if (rehearsal->over_ms > 0)
        rehearsal->back = steps && !rehearsal->away && event->unix_ms >= rehearsal->over_ms;
    else
        rehearsal->back = again;
    if (!steps || rehearsal->back)
        drill_print_event(rehearsal, event, again);
    return rehearsal->back || history_is_end(event->kind);
}

/* Follow events until the job has finished a step again, has ended, or time is up. */
static int drill_follow(const struct invocation *invocation, struct client *client,
                        struct rehearsal *rehearsal, struct error *err)
{
    int signals = signals_open(err);
    if (signals < 0)
        return EXIT_INTERNAL;
    const struct common *common = &invocation->common;
    double lasts_s =
        rehearsal->over_ms > 0 ? (double)(rehearsal->over_ms - rehearsal->since_ms) / 1e3 : 0;
    struct history_options options = {
        .client = client,
        .job = rehearsal->over_ms > 0 ? NULL : rehearsal->job,
        .signals = signals,
        .end_fd = -1,
        .timeout_s = common->timeout_s > 0 ? common->timeout_s : PATIENCE_S + lasts_s,
    };
    int code = history_follow(&options, drill_take, rehearsal, err);
    close(signals);
    if (code == EXIT_DONE && !rehearsal->back)
        code = error_set(err, EXIT_FAILED, "%s has ended; it did not recover from the drill",
                         rehearsal->job);
    return code;
}

static int drill_run(const struct invocation *invocation, struct error *err)
{
    struct client client = {0};
    ProtobufCMessage *message;
    Gimbal__DrillRequest request = GIMBAL__DRILL_REQUEST__INIT;
    struct rehearsal rehearsal = {.job = invocation->arguments[0],
                                  .output = (enum output)invocation->common.output};
    if (rehearsal.output == OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "events are printed one by one: use -o jsonl");
    int code = drill_make_request(invocation, &request, err);
    if (code == EXIT_DONE)
        code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_DRILL, &request.base, 0, &message, err);
    if (code == EXIT_DONE) {
        const Gimbal__DrillReply *reply = (const Gimbal__DrillReply *)message;
        rehearsal.since_ms = reply->unix_ms;
        rehearsal.over_ms = request.for_ms > 0 ? reply->unix_ms + request.for_ms : 0;
        snprintf(rehearsal.node, sizeof rehearsal.node, "%s", reply->node);
        message_free(message);
        code = drill_follow(invocation, &client, &rehearsal, err);
    }
    client_close(&client);
    return code;
}

const struct command command_drill = {
    .name = "drill",
    .summary = "Inject a fault into a running job and watch it recover",
    .arguments = "JOB kill-executor|kill-worker|stop|cut-link|slow-link|fill-disk",
    .arguments_min = 2,
    .arguments_max = 2,
    .flags = drill_flags,
    .values_size = sizeof(struct drill_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = drill_run,
};
