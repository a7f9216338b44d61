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

#define WITHOUT "--cluster FILE, or --local N for this machine's cores"

int living_nodes(const struct common *common, char **out, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    struct client client = {0};
    ProtobufCMessage *reply = NULL;
    int code = client_open(common, &client, err);
    if (code == EXIT_UNAVAILABLE) {
        struct error why = *err;
        error_set(err, code, "%s; or plan without one: " WITHOUT, why.text);
    }
    if (code == EXIT_DONE)
        code = client_call(&client, COORDINATOR_LIST_NODES, &request.base, 0, &reply, err);
    if (code == EXIT_DONE) {
        json_t *nodes = living_of((const Gimbal__ListNodesReply *)reply);
        if (json_array_size(nodes) == 0)
            code = error_set(err, EXIT_PRECONDITION,
                             "no node of the coordinator at %s is alive: start a worker, or plan "
                             "without one: " WITHOUT,
                             client_address(common));
        json_t *list = resource_object("NodeList", json_pack("{s:o}", "nodes", nodes));
        *out = code == EXIT_DONE ? json_dumps(list, JSON_COMPACT) : NULL;
        json_decref(list);
    }
    message_free(reply);
    client_close(&client);
    return code;
}
