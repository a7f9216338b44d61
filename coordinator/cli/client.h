/* client.h - the coordinator as a command sees it: Hello, then calls that end in exit codes. */
#ifndef COORDINATOR_CLI_CLIENT_H
#define COORDINATOR_CLI_CLIENT_H

#include "common/rpc/client.h"
#include "common/rpc/services/coordinator.h"
#include "coordinator/cli/options.h"

/* Of a call, where no --timeout says otherwise. */
#define CLIENT_TIMEOUT_S 10.0

struct client {
    struct rpc_client *rpc;
    enum rpc_status status; /* of the last call */
    uint32_t deadline_ms;
};

/* The address: --address, else GIMBAL_ADDRESS, else where a coordinator listens by default, with
 * TLS where certificates are named. */
const char *client_address(const struct common *common);
/* Where the credential of a user is kept: beside the certificates that --tls or GIMBAL_TLS names;
 * yours, NULL where neither does. */
char *client_credential_path(const struct common *common);
/* The login name, for who calls where no credential says it. */
const char *client_login(void);
/* Connect and say Hello. EXIT_DONE, or EXIT_UNAVAILABLE with how to start a coordinator. */
int client_open(const struct common *common, struct client *client, struct error *err);
/* The same for a user of that name that has no credential yet. */
int client_open_stranger(const struct common *common, const char *name, struct client *client,
                         struct error *err);
/* Again, after the coordinator was started anew. */
int client_hello(struct client *client, struct error *err);
/* Accepts a zeroed one. */
void client_close(struct client *client);
/* Call and wait, after delay_ms; where the coordinator was started anew in between, once more.
 * On EXIT_DONE *reply, any reply message, is the caller's, for message_free. */
int client_call(struct client *client, unsigned method, const ProtobufCMessage *request,
                uint32_t delay_ms, ProtobufCMessage **reply, struct error *err);
/* Open, call, close. */
int client_call_once(const struct common *common, unsigned method, const ProtobufCMessage *request,
                     ProtobufCMessage **reply, struct error *err);

#endif
