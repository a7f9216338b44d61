/* drill.c - `gimbal drill JOB FAULT`: a rehearsal. The coordinator has a worker inflict the fault
 * on the running job, and the consequences are followed until the job has finished its next step:
 * phases and lost steps, or an exit status that is not 0. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/following/history.h"
#include "coordinator/cli/signals.h"

#include "common/plan/plan.h"
#include "common/rpc/message.h"

#include <string.h>
#include <unistd.h>

#define PATIENCE_S 120.0

struct drill_values {
    int64_t rank;
};

static const struct flag drill_flags[] = {
    {"rank", 'r', FLAG_NUMBER, offsetof(struct drill_values, rank), "NUMBER",
     "the rank to hit (the job's last)", .standard = -1, .greatest = PLAN_RANKS_MAX - 1},
    {.name = NULL},
};

/* Indexed by the number of the fault in proto/drill.proto. */
static const char *const faults[] = {"kill-executor", "kill-worker", "stop", NULL};

struct rehearsal {
    const char *job;
    enum output output;
    uint64_t since_ms; /* when the fault was ordered, by the coordinator's clock */
    bool back;
};

static int find_fault(const char *word, Gimbal__DrillFault *fault, struct error *err)
{
    for (int i = 0; faults[i]; i++) {
        *fault = (Gimbal__DrillFault)i;
        if (strcmp(faults[i], word) == 0)
            return EXIT_DONE;
    }
    return error_set(err, EXIT_USAGE,
                     "unknown fault '%s': write kill-executor, kill-worker or stop", word);
}

static bool is_end(const char *kind)
{
    return strcmp(kind, "job-done") == 0 || strcmp(kind, "job-failed") == 0 ||
           strcmp(kind, "job-cancelled") == 0;
}

static void print_phases(const Gimbal__Event *event)
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

static bool take(void *data, const Gimbal__Event *event)
{
    struct rehearsal *rehearsal = data;
    if (strcmp(event->job, rehearsal->job) != 0 || event->unix_ms < rehearsal->since_ms ||
        strcmp(event->kind, "step") == 0)
        return false;
    rehearsal->back =
        strcmp(event->kind, "job-replanned") == 0 || strcmp(event->kind, "job-restarted") == 0;
    if (rehearsal->output == OUTPUT_JSONL)
        output_print_object(OUTPUT_JSONL, resource_event(event), stdout);
    else
        history_print(event, stdout);
    if (rehearsal->back && rehearsal->output != OUTPUT_JSONL)
        print_phases(event);
    fflush(stdout);
    return rehearsal->back || is_end(event->kind);
}

/* Follow events until the job has finished a step again, has ended, or time is up. */
static int follow(const struct invocation *invocation, struct client *client,
                  struct rehearsal *rehearsal, struct error *err)
{
    int signals = signals_open(err);
    if (signals < 0)
        return EXIT_INTERNAL;
    const struct common *common = &invocation->common;
    struct history_options options = {
        .client = client,
        .job = rehearsal->job,
        .signals = signals,
        .end_fd = -1,
        .timeout_s = common->timeout_s > 0 ? common->timeout_s : PATIENCE_S,
    };
    int code = history_follow(&options, take, rehearsal, err);
    close(signals);
    if (code == EXIT_DONE && !rehearsal->back)
        code = error_set(err, EXIT_FAILED, "%s has ended; it did not recover from the drill",
                         rehearsal->job);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct drill_values *values = invocation->values;
    struct client client = {0};
    ProtobufCMessage *message;
    Gimbal__DrillRequest request = GIMBAL__DRILL_REQUEST__INIT;
    struct rehearsal rehearsal = {.job = invocation->arguments[0],
                                  .output = (enum output)invocation->common.output};
    request.job = invocation->arguments[0];
    request.rank = (uint32_t)(values->rank + 1);
    if (rehearsal.output == OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "events are printed one by one: use -o jsonl");
    int code = find_fault(invocation->arguments[1], &request.fault, err);
    if (code == EXIT_DONE)
        code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_DRILL, &request.base, 0, &message, err);
    if (code == EXIT_DONE) {
        rehearsal.since_ms = ((const Gimbal__DrillReply *)message)->unix_ms;
        message_free(message);
        code = follow(invocation, &client, &rehearsal, err);
    }
    client_close(&client);
    return code;
}

const struct command command_drill = {
    .name = "drill",
    .summary = "Inject a fault into a running job and watch it recover",
    .arguments = "JOB kill-executor|kill-worker|stop",
    .arguments_min = 2,
    .arguments_max = 2,
    .flags = drill_flags,
    .values_size = sizeof(struct drill_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
