/* drain.c - `gimbal drain NODE`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

struct drain_values {
    const char *reason;
};

static const struct flag drain_flags[] = {
    {"reason", 0, FLAG_TEXT, offsetof(struct drain_values, reason), "TEXT",
     "why, for 'gimbal nodes' and the history"},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct drain_values *values = invocation->values;
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__DrainRequest request = GIMBAL__DRAIN_REQUEST__INIT;
    request.node = invocation->arguments[0];
    request.reason = (char *)(values->reason ? values->reason : "");
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_DRAIN, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_drain = {
    .name = "drain",
    .summary = "Move jobs off a node, and give it no new ones until 'gimbal undrain'",
    .arguments = "NODE",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = drain_flags,
    .values_size = sizeof(struct drain_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
