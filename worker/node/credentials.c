/* credentials.c - loads the certificates, and the credential from its file or from the coordinator.
 */
#include "worker/node/credentials.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/message/message.h"
#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/trust/secret.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL_DEADLINE_MS 5000

/* Path of a node's credential; the caller frees it. */
static char *path_of(const char *state, const char *node)
{
    return xasprintf("%s/%s.credential", state, node);
}

void credentials_apply(const struct credentials *credentials, struct rpc_client_options *options)
{
    if (!credentials->bundle)
        return;
    options->tls = &credentials->tls;
    options->role = RPC_WORKER;
    options->credential = credentials->credential.secret;
}

static enum rpc_status say_hello(struct rpc_client *client, struct error *err)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = CALL_DEADLINE_MS};
    ProtobufCMessage *reply;
    hello.release = (char *)GIMBAL_RELEASE;
    enum rpc_status status =
        rpc_client_call(client, COORDINATOR_HELLO, &hello.base, &options, &reply, err);
    if (status == RPC_OK)
        message_free(reply);
    return status;
}

static enum rpc_status change_token(struct rpc_client *client, char *token,
                                    const struct credential *credential, struct error *err)
{
    Gimbal__JoinRequest request = GIMBAL__JOIN_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = CALL_DEADLINE_MS};
    ProtobufCMessage *reply;
    request.token = token;
    request.credential = (char *)credential->secret;
    enum rpc_status status =
        rpc_client_call(client, COORDINATOR_JOIN, &request.base, &options, &reply, err);
    if (status == RPC_OK)
        message_free(reply);
    return status;
}

/* One attempt, over a connection without a credential; it is the next connection that uses it. */
static enum rpc_status try_join(const struct worker_settings *settings,
                                const struct credentials *credentials, char *token,
                                struct error *err)
{
    struct rpc_client *client;
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = settings->coordinator,
                                         .tls = &credentials->tls,
                                         .role = RPC_WORKER,
                                         .caller = settings->name,
                                         .fail_fast = true};
    int rc = rpc_client_open(&options, &client, err);
    if (rc < 0)
        return rpc_status_of_errno(rc);
    enum rpc_status status = say_hello(client, err);
    if (status == RPC_OK)
        status = change_token(client, token, &credentials->credential, err);
    rpc_client_close(client);
    return status;
}

static bool will_pass(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_FAILED_PRECONDITION;
}

/* Try until the coordinator answers, and log the obstacle whenever it changes. */
static int join(const struct worker_settings *settings, int signal_fd,
                const struct credentials *credentials, char *token, struct error *err)
{
    struct pollfd stop = {.fd = signal_fd, .events = POLLIN};
    struct error said = {""};
    enum rpc_status status;
    for (unsigned attempt = 0;; attempt++) {
        status = try_join(settings, credentials, token, err);
        if (status == RPC_OK)
            return 0;
        if (!will_pass(status))
            return error_prefix(err, status == RPC_INVALID_ARGUMENT ? -EINVAL : -EACCES,
                                "the coordinator does not let node '%s' join", settings->name);
        if (strcmp(said.text, err->text) != 0)
            log_line(LOG_WARN, "cannot join yet: %s", err->text);
        said = *err;
        uint32_t wait_ms =
            rpc_backoff_ms(attempt, random_uniform((uint64_t)time(NULL), 0, attempt));
        if (poll(&stop, 1, (int)wait_ms) > 0)
            return error_set(err, -EINTR, "stopped before node '%s' could join", settings->name);
    }
}

static int without_token(const struct worker_settings *settings, const char *path,
                         struct error *err)
{
    return error_set(err, -EINVAL,
                     "node '%s' has not joined: there is no %s; give --join TOKEN-FILE, with "
                     "what 'gimbal cluster token worker' printed",
                     settings->name, path);
}

static int join_and_keep(const struct worker_settings *settings, int signal_fd, const char *path,
                         struct credentials *credentials, struct error *err)
{
    char *token;
    if (!settings->join)
        return without_token(settings, path, err);
    int rc = credential_read_token(settings->join, &token, err);
    if (rc < 0)
        return error_prefix(err, -EINVAL, "join");
    rc = folder_make(settings->state, err);
    if (rc == 0)
        rc = credential_offer(path, settings->name, &credentials->credential, err);
    if (rc == 0)
        rc = join(settings, signal_fd, credentials, token, err);
    secret_free(token);
    if (rc == 0)
        rc = credential_keep(path, &credentials->credential, err);
    if (rc == 0)
        log_line(LOG_INFO,
                 "joined as '%s'; the credential is in %s, and the token is no longer "
                 "needed",
                 settings->name, path);
    return rc;
}

/* -ENOENT: there is no credential yet. */
static int read_kept(const struct worker_settings *settings, const char *path,
                     struct credentials *credentials, struct error *err)
{
    int rc = credential_read(path, &credentials->credential, err);
    if (rc == 0 && strcmp(credentials->credential.name, settings->name) != 0)
        rc = error_set(err, -EINVAL, "%s is the credential of node '%s', and this is '%s'", path,
                       credentials->credential.name, settings->name);
    /* The user has to fix it here: the coordinator has refused nothing. */
    return rc == -EACCES ? -EINVAL : rc;
}

static int have_credential(const struct worker_settings *settings, int signal_fd,
                           struct credentials *credentials, struct error *err)
{
    char *path = path_of(settings->state, settings->name);
    int rc = read_kept(settings, path, credentials, err);
    if (rc == -ENOENT)
        rc = join_and_keep(settings, signal_fd, path, credentials, err);
    free(path);
    return rc;
}

static int open_bundle(const struct worker_settings *settings, struct bundle **out,
                       struct error *err)
{
    return bundle_load(settings->tls, 1u << BUNDLE_WORKER, (int64_t)time(NULL), out, err);
}

/* The certificates for calls. */
static int load_bundle(const struct worker_settings *settings, struct credentials *credentials,
                       struct error *err)
{
    int rc = open_bundle(settings, &credentials->bundle, err);
    if (rc == 0)
        credentials->tls =
            (struct rpc_tls){credentials->bundle->certificate, credentials->bundle->key,
                             credentials->bundle->authority};
    return rc;
}

int credentials_check(const struct worker_settings *settings, struct error *err)
{
    struct bundle *bundle = NULL;
    int rc = settings->tls ? open_bundle(settings, &bundle, err) : 0;
    if (rc == 0 && settings->tls && !settings->join) {
        char *path = path_of(settings->state, settings->name);
        rc = access(path, F_OK) == 0 ? 0 : without_token(settings, path, err);
        free(path);
    }
    bundle_destroy(bundle);
    return rc;
}

int credentials_open(const struct worker_settings *settings, int signal_fd, struct credentials *out,
                     struct error *err)
{
    *out = (struct credentials){0};
    if (!settings->tls)
        return 0;
    int rc = load_bundle(settings, out, err);
    if (rc == 0)
        rc = have_credential(settings, signal_fd, out, err);
    if (rc < 0)
        credentials_finish(out);
    return rc;
}

int credentials_open_kept(const struct worker_settings *settings, struct credentials *out,
                          bool *joined, struct error *err)
{
    *out = (struct credentials){0};
    *joined = false;
    if (!settings->tls)
        return 0;
    char *path = path_of(settings->state, settings->name);
    int rc = load_bundle(settings, out, err);
    if (rc == 0)
        rc = read_kept(settings, path, out, err);
    *joined = rc == 0;
    if (rc == -ENOENT)
        rc = settings->join ? 0 : without_token(settings, path, err);
    free(path);
    if (rc < 0)
        credentials_finish(out);
    return rc;
}

void credentials_finish(struct credentials *credentials)
{
    bundle_destroy(credentials->bundle);
    explicit_bzero(credentials, sizeof *credentials);
}
