/* cancel.c - `gimbal cancel JOB`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

struct cancel_values {
    const char *reason;
    bool save;
};

static const struct flag cancel_flags[] = {
    {"reason", 0, FLAG_TEXT, offsetof(struct cancel_values, reason), "TEXT",
     "why, for the job's history"},
    {"save", 0, FLAG_SWITCH, offsetof(struct cancel_values, save), NULL,
     "finish the current step and save a checkpoint first"},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct cancel_values *values = invocation->values;
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = (char *)(values->reason ? values->reason : "");
    request.save = values->save;
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_CANCEL, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_cancel = {
    .name = "cancel",
    .summary = "End a job and release its devices",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = cancel_flags,
    .values_size = sizeof(struct cancel_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
