/* list.c - `gimbal jobs`: what is queued, what runs, and how far it is; and `gimbal nodes`: the
 * machines and what they have. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/tables.h"

#include "common/message/message.h"

struct jobs_values {
    bool all;
    const char *user;
};

static const struct flag jobs_flags[] = {
    {"all", 'a', FLAG_SWITCH, offsetof(struct jobs_values, all), NULL,
     "include jobs that have ended"},
    {"user", 'u', FLAG_TEXT, offsetof(struct jobs_values, user), "NAME", "only jobs of this user"},
    {.name = NULL},
};

/* Move jobs that are not over to the front, in their order. Returns their number. */
static size_t jobs_bring_forward(Gimbal__JobStatus **jobs, size_t all)
{
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        Gimbal__JobStatus *job = jobs[i];
        if (resource_job_is_over(job->state))
            continue;
        jobs[i] = jobs[count];
        jobs[count++] = job;
    }
    return count;
}

/* The table has no rows: say what to do next. */
static void jobs_explain_none(const char *user, size_t over)
{
    if (user && over == 0)
        fprintf(stderr, "there are no jobs of user '%s'\n", user);
    else if (over > 0)
        fprintf(stderr,
                "no job is waiting or running; 'gimbal jobs -a' also lists the %zu that %s ended\n",
                over, over == 1 ? "has" : "have");
    else
        fputs("there are no jobs; 'gimbal submit -f job.yaml' submits one\n", stderr);
}

/* A job that is not in the list may have been removed: the coordinator knows. */
static int jobs_explain_missing(struct client *client, const char *job, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = client_get_job(client, job, &reply, err);
    if (code == EXIT_DONE)
        message_free(&reply->base);
    return code;
}

static int jobs_print(const struct invocation *invocation, struct client *client, FILE *out,
                      struct error *err)
{
    const struct jobs_values *values = invocation->values;
    Gimbal__ListJobsRequest request = GIMBAL__LIST_JOBS_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.all = true;
    request.user = (char *)(values->user ? values->user : "");
    int code = client_call(client, COORDINATOR_LIST_JOBS, &request.base, 0, &reply, err);
    if (code != EXIT_DONE)
        return code;
    Gimbal__ListJobsReply *list = (Gimbal__ListJobsReply *)reply;
    size_t count = 0;
    const char *missing = named_missing(invocation, (void **)list->jobs, list->n_jobs,
                                        offsetof(Gimbal__JobStatus, job));
    if (missing)
        code = jobs_explain_missing(client, missing, err);
    if (code == EXIT_DONE && invocation->argument_count > 0)
        code = named_bring(invocation, (void **)list->jobs, list->n_jobs,
                           offsetof(Gimbal__JobStatus, job), "job", &count, err);
    else
        count = values->all ? list->n_jobs : jobs_bring_forward(list->jobs, list->n_jobs);
    if (code == EXIT_DONE)
        jobtable_print(&invocation->common, list->jobs, count, out);
    if (code == EXIT_DONE && count == 0 && invocation->common.output < OUTPUT_JSON &&
        !invocation->common.quiet && !invocation->common.watch)
        jobs_explain_none(values->user, list->n_jobs);
    message_free(reply);
    return code;
}

static int jobs_run(const struct invocation *invocation, struct error *err)
{
    return repeat_run(invocation, jobs_print, err);
}

const struct command command_jobs = {
    .name = "jobs",
    .alias = "squeue",
    .summary = "List jobs: state, progress, loss, speed, plan",
    .arguments = "[JOB ...]",
    .arguments_max = NAMED_MAX,
    .flags = jobs_flags,
    .values_size = sizeof(struct jobs_values),
    .takes = TAKES_OUTPUT | TAKES_NAMES | TAKES_WATCH | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = jobs_run,
};

/* The table has no rows: say what would give it some. */
static void nodes_explain_none(const struct common *common)
{
    if (common->output < OUTPUT_JSON && !common->quiet && !common->watch)
        fputs("no worker has joined; 'gimbal-worker' starts one, which joins once it has measured "
              "its devices\n",
              stderr);
}

static int nodes_print(const struct invocation *invocation, struct client *client, FILE *out,
                       struct error *err)
{
    Gimbal__ListNodesReply *list;
    int code = client_list_nodes(client, &list, err);
    if (code != EXIT_DONE)
        return code;
    size_t count = list->n_nodes;
    if (invocation->argument_count > 0)
        code = named_bring(invocation, (void **)list->nodes, list->n_nodes,
                           offsetof(Gimbal__NodeStatus, name), "node", &count, err);
    if (code == EXIT_DONE)
        nodetable_print(&invocation->common, list->nodes, count, out);
    if (code == EXIT_DONE && count == 0)
        nodes_explain_none(&invocation->common);
    message_free(&list->base);
    return code;
}

static int nodes_run(const struct invocation *invocation, struct error *err)
{
    return repeat_run(invocation, nodes_print, err);
}

const struct command command_nodes = {
    .name = "nodes",
    .alias = "sinfo",
    .summary = "List nodes: state, devices, memory, speed, jobs",
    .arguments = "[NODE ...]",
    .arguments_max = NAMED_MAX,
    .takes = TAKES_OUTPUT | TAKES_NAMES | TAKES_WATCH | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = nodes_run,
};
