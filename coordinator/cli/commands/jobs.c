/* jobs.c - `gimbal jobs`: what is queued, what runs, how far it is. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobtable.h"
#include "coordinator/cli/watching.h"

#include "common/rpc/message.h"

struct jobs_values {
    bool all;
};

static const struct flag jobs_flags[] = {
    {"all", 'a', FLAG_SWITCH, offsetof(struct jobs_values, all), NULL, "also those that are over"},
    {.name = NULL},
};

static int print(const struct invocation *invocation, struct client *client, struct error *err)
{
    const struct jobs_values *values = invocation->values;
    Gimbal__ListJobsRequest request = GIMBAL__LIST_JOBS_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.all = values->all;
    int code = client_call(client, COORDINATOR_LIST_JOBS, &request.base, 0, &reply, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListJobsReply *list = (const Gimbal__ListJobsReply *)reply;
    jobtable_print(&invocation->common, list->jobs, list->n_jobs, stdout);
    message_free(reply);
    return EXIT_DONE;
}

static int run(const struct invocation *invocation, struct error *err)
{
    return watching_run(invocation, print, err);
}

const struct command command_jobs = {
    .name = "jobs",
    .alias = "squeue",
    .summary = "List the jobs: state, progress, loss, speed, plan",
    .arguments = "",
    .flags = jobs_flags,
    .values_size = sizeof(struct jobs_values),
    .takes = TAKES_OUTPUT | TAKES_WATCH | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
