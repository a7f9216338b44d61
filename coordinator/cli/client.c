/* client.c - one connection, and the sentences when there is none. */
#include "coordinator/cli/client.h"

#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_DEFAULT "tcp://127.0.0.1:7070"

const char *client_address(const struct common *common)
{
    const char *environment = getenv("GIMBAL_ADDRESS");
    if (common->address)
        return common->address;
    return environment && *environment ? environment : ADDRESS_DEFAULT;
}

static int fail_unavailable(const struct common *common, struct error *err)
{
    return error_set(err, EXIT_UNAVAILABLE,
                     "no coordinator answers at %s; start one with 'gimbal-coordinator', name "
                     "another by --address or GIMBAL_ADDRESS, or try 'gimbal demo'",
                     client_address(common));
}

int client_hello(struct client *client, struct error *err)
{
    Gimbal__HelloRequest request = GIMBAL__HELLO_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = client->deadline_ms};
    ProtobufCMessage *reply;
    request.release = GIMBAL_VERSION;
    client->status =
        rpc_client_call(client->rpc, COORDINATOR_HELLO, &request.base, &options, &reply, err);
    if (client->status == RPC_OK)
        message_free(reply);
    return exit_of_status(client->status);
}

int client_open(const struct common *common, struct client *client, struct error *err)
{
    const char *user = getenv("USER");
    struct rpc_client_options options = {
        .service = &service_coordinator,
        .address = client_address(common),
        .caller = user && *user ? user : "user",
        .fail_fast = true,
    };
    double timeout_s = common->timeout_s > 0 ? common->timeout_s : CLIENT_TIMEOUT_S;
    *client = (struct client){.deadline_ms = (uint32_t)(timeout_s * 1000 + 1)};
    int rc = rpc_client_open(&options, &client->rpc, err);
    if (rc == -ECONNREFUSED || rc == -EHOSTDOWN)
        return fail_unavailable(common, err);
    if (rc < 0)
        return rc == -EINVAL ? EXIT_USAGE : exit_of_errno(rc);
    int code = client_hello(client, err);
    if (code != EXIT_DONE)
        client_close(client);
    return client->status == RPC_UNAVAILABLE || client->status == RPC_DEADLINE_EXCEEDED
               ? fail_unavailable(common, err)
               : code;
}

void client_close(struct client *client)
{
    rpc_client_close(client->rpc);
    client->rpc = NULL;
}

int client_call(struct client *client, unsigned method, const ProtobufCMessage *request,
                uint32_t delay_ms, ProtobufCMessage **reply, struct error *err)
{
    struct rpc_call_options options = {.deadline_ms = client->deadline_ms, .delay_ms = delay_ms};
    uint64_t term = rpc_client_term(client->rpc);
    client->status = rpc_client_call(client->rpc, method, request, &options, reply, err);
    if (client->status != RPC_FAILED_PRECONDITION)
        return exit_of_status(client->status);
    struct error hello;
    enum rpc_status status = client->status;
    int code = client_hello(client, &hello);
    if (code == EXIT_DONE && rpc_client_term(client->rpc) != term)
        client->status = status =
            rpc_client_call(client->rpc, method, request, &options, reply, err);
    return exit_of_status(status);
}
