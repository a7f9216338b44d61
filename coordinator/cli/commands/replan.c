/* replan.c - `gimbal replan JOB`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

struct replan_values {
    const char *reason;
};

static const struct flag replan_flags[] = {
    {"reason", 0, FLAG_TEXT, offsetof(struct replan_values, reason), "TEXT",
     "why, for the job's history"},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct replan_values *values = invocation->values;
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__ReplanRequest request = GIMBAL__REPLAN_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = (char *)(values->reason ? values->reason : "");
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_REPLAN, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_replan = {
    .name = "replan",
    .summary = "Plan a running job again, and move it to the best devices free now",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = replan_flags,
    .values_size = sizeof(struct replan_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
