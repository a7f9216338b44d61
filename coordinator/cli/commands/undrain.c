/* undrain.c - `gimbal undrain NODE`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

static int run(const struct invocation *invocation, struct error *err)
{
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__DrainRequest request = GIMBAL__DRAIN_REQUEST__INIT;
    request.undo = true;
    request.node = invocation->arguments[0];
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_DRAIN, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_undrain = {
    .name = "undrain",
    .summary = "Give jobs to a drained node again",
    .arguments = "NODE",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
