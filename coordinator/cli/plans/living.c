/* living.c - takes the nodes that the coordinator lists, except those that get no work. */
#include "coordinator/cli/plans/living.h"

#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/tables/nodetable.h"

static json_t *living_of(const Gimbal__ListNodesReply *reply)
{
    json_t *items = json_array();
    for (size_t i = 0; i < reply->n_nodes; i++)
        if (reply->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__ALIVE)
            json_array_append_new(items, resource_node(reply->nodes[i]));
    return items;
}

int living_suggest(int code, struct error *err)
{
    struct error why = *err;
    if (code == EXIT_UNAVAILABLE || code == EXIT_AGAIN)
        error_set(err, code, "%s; or plan for --cluster FILE, or for this machine with --local N",
                  why.text);
    return code;
}

/* No node is alive. */
static int refuse_none(const struct common *common, const Gimbal__ListNodesReply *reply,
                       struct error *err)
{
    unsigned drained = 0;
    for (size_t i = 0; i < reply->n_nodes; i++)
        drained += reply->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
                   reply->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__DRAINED;
    if (drained > 0)
        return error_set(err, EXIT_AGAIN,
                         "no node of the coordinator at %s gets jobs now: %u %s drained, and "
                         "'gimbal undrain NODE' gives one back",
                         client_address(common), drained, drained == 1 ? "is" : "are");
    return error_set(err, EXIT_AGAIN,
                     "no node of the coordinator at %s is alive: start one with 'gimbal-worker'",
                     client_address(common));
}

int living_nodes(const struct common *common, char **out, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    struct client client = {0};
    ProtobufCMessage *reply = NULL;
    int code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_LIST_NODES, &request.base, 0, &reply, err);
    if (code == EXIT_DONE) {
        json_t *nodes = living_of((const Gimbal__ListNodesReply *)reply);
        if (json_array_size(nodes) == 0)
            code = refuse_none(common, (const Gimbal__ListNodesReply *)reply, err);
        json_t *list = resource_object("NodeList", json_pack("{s:o}", "nodes", nodes));
        *out = code == EXIT_DONE ? json_dumps(list, JSON_COMPACT) : NULL;
        json_decref(list);
    }
    message_free(reply);
    client_close(&client);
    return living_suggest(code, err);
}
