/* client.c - finds out who calls and with which credentials, opens the connection, and says what to
 * do if nobody answers. */
#include "coordinator/cli/client.h"

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/trust/bundle.h"
#include "common/trust/certificate.h"
#include "common/trust/secret.h"
#include "coordinator/cli/exit.h"

#define ADDRESS_DEFAULT "tcp://127.0.0.1:7070"

/* Who calls, and with which credentials. */
struct caller {
    struct bundle *bundle; /* NULL: without TLS */
    struct credential credential;
    struct rpc_tls tls; /* refers to the bundle */
};

/* The directory of certificates; NULL: none, hence no TLS. */
static const char *client_tls_folder(const struct common *common)
{
    const char *environment = getenv("GIMBAL_TLS");
    if (common->tls)
        return common->tls;
    return environment && *environment ? environment : NULL;
}

const char *client_address(const struct common *common)
{
    const char *environment = getenv("GIMBAL_ADDRESS");
    if (common->address)
        return common->address;
    if (environment && *environment)
        return environment;
    return client_tls_folder(common) ? "tls+" ADDRESS_DEFAULT : ADDRESS_DEFAULT;
}

const char *client_login(void)
{
    const char *user = getenv("USER");
    if (user && *user)
        return user;
    const struct passwd *entry = getpwuid(geteuid()); /* a container or cron sets no USER */
    return entry && *entry->pw_name ? entry->pw_name : "user";
}

char *client_credential_path(const struct common *common)
{
    const char *folder = client_tls_folder(common);
    return folder ? xasprintf("%s/credential", folder) : NULL;
}

enum client_role client_role(const struct common *common)
{
    const char *folder = client_tls_folder(common);
    struct certificate_facts facts;
    enum client_role role = CLIENT_UNKNOWN;
    char *text, *path;
    if (!folder || !*folder)
        return role;
    path = xasprintf("%s/tls.crt", folder);
    if (file_read(path, &text, NULL) == 0) {
        if (certificate_read(text, &facts, NULL) == 0) {
            const char *word = *facts.unit ? facts.unit : facts.name;
            role = strcmp(word, "worker") == 0 ? CLIENT_WORKER : *word ? CLIENT_USER : role;
        }
        free(text);
    }
    free(path);
    return role;
}

static int client_read_credential(const struct common *common, struct caller *caller,
                                  struct error *err)
{
    char *path = client_credential_path(common);
    int rc = credential_read(path, &caller->credential, err);
    if (rc == -ENOENT)
        error_set(
            err, rc,
            "there is no %s: first join with 'gimbal cluster join TOKEN-FILE' and a token from "
            "an administrator",
            path);
    free(path);
    return rc < 0 ? EXIT_CONFIGURATION : EXIT_DONE;
}

/* name: of a user without a credential; NULL: as the credential says. An administrator needs
 * none. */
static int client_find_caller(const struct common *common, const char *name, struct caller *caller,
                              struct error *err)
{
    const char *folder = client_tls_folder(common);
    unsigned from = 1u << BUNDLE_USER | (name ? 0 : 1u << BUNDLE_ADMIN);
    *caller = (struct caller){.bundle = NULL};
    snprintf(caller->credential.name, sizeof caller->credential.name, "%s",
             name ? name : client_login());
    if (!folder)
        return EXIT_DONE;
    if (bundle_load(folder, from, (int64_t)time(NULL), &caller->bundle, err) < 0)
        return EXIT_CONFIGURATION;
    caller->tls = (struct rpc_tls){caller->bundle->certificate, caller->bundle->key,
                                   caller->bundle->authority};
    return name || caller->bundle->role == BUNDLE_ADMIN
               ? EXIT_DONE
               : client_read_credential(common, caller, err);
}

static int client_fail_unavailable(const struct common *common, struct error *err)
{
    return error_set(err, EXIT_UNAVAILABLE,
                     "no coordinator answers at %s; start one with 'gimbal-coordinator', name "
                     "another with --address or GIMBAL_ADDRESS, or try 'gimbal demo'",
                     client_address(common));
}

/* Somebody may listen there; *err says what went wrong. */
static int client_fail_unanswered(const struct common *common, struct error *err)
{
    struct error why = *err;
    return error_set(err, EXIT_UNAVAILABLE, "no coordinator answers at %s: %s",
                     client_address(common), why.text);
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

static int client_open_as(const struct common *common, const struct caller *caller,
                          struct client *client, struct error *err)
{
    const struct bundle *bundle = caller->bundle;
    double timeout_s = common->timeout_s > 0 ? common->timeout_s : CLIENT_TIMEOUT_S;
    *client = (struct client){.deadline_ms = (uint32_t)(timeout_s * 1000 + 1)};
    struct rpc_client_options options = {
        .service = &service_coordinator,
        .address = client_address(common),
        .tls = bundle ? &caller->tls : NULL,
        .role = bundle && bundle->role == BUNDLE_ADMIN ? RPC_ADMIN : RPC_USER,
        .caller = caller->credential.name,
        .credential = caller->credential.secret,
        .fail_fast = true,
        .patience_ms = client->deadline_ms,
    };
    int rc = rpc_client_open(&options, &client->rpc, err);
    if (rc == -ECONNREFUSED)
        return client_fail_unavailable(common, err);
    if (rc == -EHOSTDOWN)
        return client_fail_unanswered(common, err);
    if (rc < 0)
        return rc == -EINVAL ? EXIT_USAGE : exit_of_errno(rc);
    int code = client_hello(client, err);
    if (code != EXIT_DONE)
        client_close(client);
    return client->status == RPC_UNAVAILABLE || client->status == RPC_DEADLINE_EXCEEDED
               ? client_fail_unanswered(common, err)
               : code;
}

int client_open_stranger(const struct common *common, const char *name, struct client *client,
                         struct error *err)
{
    struct caller caller;
    *client = (struct client){0};
    int code = client_find_caller(common, name, &caller, err);
    if (code == EXIT_DONE)
        code = client_open_as(common, &caller, client, err);
    bundle_destroy(caller.bundle);
    explicit_bzero(&caller, sizeof caller);
    return code;
}

int client_open(const struct common *common, struct client *client, struct error *err)
{
    return client_open_stranger(common, NULL, client, err);
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
    if (status == RPC_OK && err)
        err->text[0] = '\0'; /* left by the first attempt */
    return exit_of_status(status);
}

int client_call_once(const struct common *common, unsigned method, const ProtobufCMessage *request,
                     ProtobufCMessage **reply, struct error *err)
{
    struct client client = {0};
    int code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = client_call(&client, method, request, 0, reply, err);
    client_close(&client);
    return code;
}

int client_get_job(struct client *client, const char *job, Gimbal__GetJobReply **out,
                   struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.job = (char *)job;
    int code = client_call(client, COORDINATOR_GET_JOB, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        *out = (Gimbal__GetJobReply *)reply;
    return code;
}

int client_list_nodes(struct client *client, Gimbal__ListNodesReply **out, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    int code = client_call(client, COORDINATOR_LIST_NODES, &request.base, 0, &reply, err);
    if (code == EXIT_DONE)
        *out = (Gimbal__ListNodesReply *)reply;
    return code;
}

int client_get_job_once(const struct common *common, const char *job, Gimbal__GetJobReply **out,
                        struct error *err)
{
    struct client client = {0};
    int code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = client_get_job(&client, job, out, err);
    client_close(&client);
    return code;
}

int client_list_nodes_once(const struct common *common, Gimbal__ListNodesReply **out,
                           struct error *err)
{
    struct client client = {0};
    int code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = client_list_nodes(&client, out, err);
    client_close(&client);
    return code;
}

/* The plan's own id, for those who read the request; "" if the text has none. */
static char *submission_plan_id(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    const char *id = json_string_value(json_object_get(json, "id"));
    char *copy = xstrdup(id ? id : "");
    json_decref(json);
    return copy;
}

int submission_send(struct client *client, const struct submitting *what,
                    struct submission *submission, struct error *err)
{
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__Plan given = GIMBAL__PLAN__INIT;
    ProtobufCMessage *message;
    spec.name = (char *)what->name; /* the job's user is the caller */
    spec.yaml = (char *)what->yaml;
    request.spec = &spec;
    request.origin = (Gimbal__Origin *)what->origin;
    request.dry_run = what->dry_run;
    if (what->plan) {
        given.id = submission_plan_id(what->plan);
        given.json = (char *)what->plan;
        spec.plan = &given;
    }
    int code = client_call(client, COORDINATOR_SUBMIT, &request.base, 0, &message, err);
    if (what->plan)
        free(given.id);
    if (code != EXIT_DONE)
        return client->status == COORDINATOR_NO_PLAN ? EXIT_NO_PLAN : code;
    const Gimbal__SubmitReply *reply = (const Gimbal__SubmitReply *)message;
    submission->job = xstrdup(reply->job);
    submission->waiting = xstrdup(reply->waiting_reason);
    submission->saved = xstrdup(reply->checkpoint_folder);
    message_free(message);
    return EXIT_DONE;
}

void submission_finish(struct submission *submission)
{
    free(submission->job);
    free(submission->waiting);
    free(submission->saved);
    *submission = (struct submission){0};
}
