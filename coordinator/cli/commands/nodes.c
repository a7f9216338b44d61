/* nodes.c - `gimbal nodes`: the machines and what they have. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/tables.h"

#include "common/rpc/message.h"

/* The table has no rows: say what would give it some. */
static void explain_none(const struct common *common)
{
    if (common->output < OUTPUT_JSON && !common->quiet && !common->watch)
        fputs("no worker has joined; 'gimbal-worker' starts one, which joins once it has measured "
              "its devices\n",
              stderr);
}

static int print(const struct invocation *invocation, struct client *client, FILE *out,
                 struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply;
    int code = client_call(client, COORDINATOR_LIST_NODES, &request.base, 0, &reply, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListNodesReply *list = (const Gimbal__ListNodesReply *)reply;
    size_t count = list->n_nodes;
    if (invocation->argument_count > 0)
        code = named_bring(invocation, (void **)list->nodes, list->n_nodes,
                           offsetof(Gimbal__NodeStatus, name), "node", &count, err);
    if (code == EXIT_DONE)
        nodetable_print(&invocation->common, list->nodes, count, out);
    if (code == EXIT_DONE && count == 0)
        explain_none(&invocation->common);
    message_free(reply);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    return repeat_run(invocation, print, err);
}

const struct command command_nodes = {
    .name = "nodes",
    .alias = "sinfo",
    .summary = "List nodes: state, devices, memory, speed, jobs",
    .arguments = "[NODE ...]",
    .arguments_max = NAMED_MAX,
    .takes = TAKES_OUTPUT | TAKES_NAMES | TAKES_WATCH | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
