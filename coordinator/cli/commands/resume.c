/* resume.c - `gimbal resume JOB`. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

static int run(const struct invocation *invocation, struct error *err)
{
    struct client client = {0};
    ProtobufCMessage *reply;
    Gimbal__ResumeRequest request = GIMBAL__RESUME_REQUEST__INIT;
    request.job = invocation->arguments[0];
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_RESUME, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    client_close(&client);
    return code;
}

const struct command command_resume = {
    .name = "resume",
    .summary = "Resume a paused job",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
