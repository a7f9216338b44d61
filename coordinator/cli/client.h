/* client.h - the coordinator as seen by a command: Hello, then calls that result in exit codes; and
 * the calls that several commands make. */
#ifndef COORDINATOR_CLI_CLIENT_H
#define COORDINATOR_CLI_CLIENT_H

#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "coordinator/cli/options.h"

/* of a call, unless --timeout says otherwise */
#define CLIENT_TIMEOUT_S 10.0

struct client {
    struct rpc_client *rpc;
    enum rpc_status status; /* of the last call */
    uint32_t deadline_ms;
};

/* The address: --address, else GIMBAL_ADDRESS, else the default address of a coordinator, with TLS
 * if certificates are named. */
const char *client_address(const struct common *common);
/* The file of the user's credential, next to the certificates named by --tls or GIMBAL_TLS; the
 * caller frees it. NULL: neither names any. */
char *client_credential_path(const struct common *common);
/* The login name, used by callers without a credential. */
const char *client_login(void);
/* Whose certificates the folder named by --tls or GIMBAL_TLS has: a worker's, so that the caller is
 * no user; or others', so that they are not for a worker. CLIENT_UNKNOWN: there is none to read. */
enum client_role { CLIENT_UNKNOWN, CLIENT_WORKER, CLIENT_USER };
enum client_role client_role(const struct common *common);
/* Connect and say Hello. EXIT_DONE, or EXIT_UNAVAILABLE with a hint how to start a coordinator. */
int client_open(const struct common *common, struct client *client, struct error *err);
/* The same for a user of this name who has no credential yet. */
int client_open_stranger(const struct common *common, const char *name, struct client *client,
                         struct error *err);
/* Say Hello again, after the coordinator was restarted. */
int client_hello(struct client *client, struct error *err);
/* Accepts a zeroed struct. */
void client_close(struct client *client);
/* Call after delay_ms and wait for the reply; if the coordinator was restarted meanwhile, call once
 * more. On EXIT_DONE the caller owns *reply, which may be any reply message, and releases it with
 * message_free(). */
int client_call(struct client *client, unsigned method, const ProtobufCMessage *request,
                uint32_t delay_ms, ProtobufCMessage **reply, struct error *err);
/* Open, call and close. */
int client_call_once(const struct common *common, unsigned method, const ProtobufCMessage *request,
                     ProtobufCMessage **reply, struct error *err);

/* What the coordinator knows of a job, and of all nodes. The caller frees *out with message_free().
 * An enum exit_code. */
int client_get_job(struct client *client, const char *job, Gimbal__GetJobReply **out,
                   struct error *err);
int client_list_nodes(struct client *client, Gimbal__ListNodesReply **out, struct error *err);
/* Open, get, and close. */
int client_get_job_once(const struct common *common, const char *job, Gimbal__GetJobReply **out,
                        struct error *err);
int client_list_nodes_once(const struct common *common, Gimbal__ListNodesReply **out,
                           struct error *err);

/* The Submit call and its outcome. */

struct submission {
    char *job;     /* its id in the cluster */
    char *waiting; /* why it cannot be placed now; "" if it can */
    char *saved;   /* the folder that its checkpoints will be in; "": nothing is saved */
};

/* What is submitted. */
struct submitting {
    const char *name;
    const char *yaml;             /* text of the job file */
    const char *plan;             /* JSON; NULL: the coordinator's choice */
    const Gimbal__Origin *origin; /* what it goes on from; NULL: it begins anew */
    bool dry_run;
};

/* An enum exit_code: EXIT_NO_PLAN if there can be no plan. On EXIT_DONE the caller finishes the
 * submission. */
int submission_send(struct client *client, const struct submitting *what,
                    struct submission *submission, struct error *err);
/* Accepts a zeroed struct. */
void submission_finish(struct submission *submission);

#endif
