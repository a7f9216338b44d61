/* pause.c - `gimbal pause JOB`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

struct pause_values {
    const char *reason;
    bool release;
};

static const struct flag pause_flags[] = {
    {"reason", 0, FLAG_TEXT, offsetof(struct pause_values, reason), "TEXT",
     "why, for the job's history"},
    {"release", 0, FLAG_SWITCH, offsetof(struct pause_values, release), NULL,
     "save a checkpoint and release the devices; the job resumes from it"},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    const struct pause_values *values = invocation->values;
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__PauseRequest request = GIMBAL__PAUSE_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = (char *)(values->reason ? values->reason : "");
    request.release = values->release;
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_PAUSE, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_pause = {
    .name = "pause",
    .summary = "Pause a job after a step, or keep it waiting, until 'gimbal resume'",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = pause_flags,
    .values_size = sizeof(struct pause_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
