/* identity.c - how nodes and users are admitted and revoked: tokens, joining.
 *
 * What they change is in the store before they are answered: the use of a token stays counted, and
 * whoever is told that a name was revoked can rely on it. */
#include <assert.h>
#include <sys/random.h>

#include "common/base/memory.h"
#include "coordinator/service/calls.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/turn.h"

/* Without TLS nobody is asked for a credential, so what these calls issue would be useless. */
static bool identity_refuse_plain(struct rpc_call *call)
{
    if (!door_trusts_all(rpc_call_roles(call)))
        return false;
    rpc_call_fail(call, RPC_FAILED_PRECONDITION,
                  "this coordinator listens without TLS, where nobody needs a credential");
    return true;
}

static void identity_draw(uint8_t random[IDENTITY_RANDOM_BYTES])
{
    size_t used = 0;
    while (used < IDENTITY_RANDOM_BYTES) {
        ssize_t got = getrandom(random + used, IDENTITY_RANDOM_BYTES - used, 0);
        used += got > 0 ? (size_t)got : 0;
    }
}

static void identity_issue_token(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__IssueTokenRequest *request = rpc_call_request(call);
    struct identity_grant grant = {
        .name = request->name, .ttl_ms = request->ttl_ms, .uses = request->uses};
    const struct identity_token *token = NULL;
    uint8_t random[IDENTITY_RANDOM_BYTES];
    char text[IDENTITY_TOKEN_SIZE];
    struct error err;
    if (identity_refuse_plain(call))
        return;
    int rc = door_check_disk(&service->door, &err);
    if (rc == 0)
        rc = identity_role_parse(request->role, &grant.role, &err);
    identity_draw(random);
    if (rc == 0)
        rc = identity_issue(service->identity, &grant, state_now_ms(service->state), random, text,
                            &token, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    assert(token);
    store_put_token(service->state->options.store, token);
    history_tell(service->state, "token-issued", "", "", NULL, "token %s for %s %s, %u uses, by %s",
                 token->id, request->role, token->name[0] ? token->name : "of any name",
                 token->uses_left, rpc_call_envelope(call)->caller);
    Gimbal__IssueTokenReply reply = GIMBAL__ISSUE_TOKEN_REPLY__INIT;
    reply.token = text;
    reply.expires_unix_ms = token->expires_ms;
    turn_run(service->state);
    rpc_call_reply(call, &reply.base);
    explicit_bzero(text, sizeof text);
    explicit_bzero(random, sizeof random);
}

static void identity_keep_joined(struct service *service, const struct identity_joined *joined)
{
    const struct identity_credential *credential = joined->credential;
    store_put_token(service->state->options.store, joined->token);
    store_put_credential(service->state->options.store, credential);
    history_tell(service->state, "joined", "",
                 credential->role == IDENTITY_WORKER ? credential->name : "", NULL,
                 "%s %s joined with token %s", identity_role_names[credential->role],
                 credential->name, joined->token->id);
}

static void identity_join_call(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__JoinRequest *request = rpc_call_request(call);
    unsigned from = rpc_call_roles(call);
    enum identity_role role = from & RPC_WORKER ? IDENTITY_WORKER : IDENTITY_USER;
    struct identity_joined joined;
    struct error err;
    if (identity_refuse_plain(call))
        return;
    if (from & RPC_ADMIN) {
        rpc_call_fail(call, RPC_FAILED_PRECONDITION,
                      "an administrator needs no credential: the certificate is enough");
        return;
    }
    int rc = door_check_disk(&service->door, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    rc = identity_join(service->identity, role, rpc_call_envelope(call)->caller, request->token,
                       request->credential, state_now_ms(service->state), &joined, &err);
    if (rc < 0) {
        door_note_refusal(&service->door, rpc_call_envelope(call), &err);
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    if (joined.token)
        identity_keep_joined(service, &joined);
    Gimbal__JoinReply reply = GIMBAL__JOIN_REPLY__INIT;
    turn_run(service->state);
    rpc_call_reply(call, &reply.base);
}

static void identity_put_token(void *data, const struct identity_token *token)
{
    struct service *service = data;
    store_put_token(service->state->options.store, token);
}

static void identity_revoke_call(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__RevokeRequest *request = rpc_call_request(call);
    const struct identity_credential *credential = NULL;
    enum identity_role role;
    struct error err;
    if (identity_refuse_plain(call))
        return;
    int rc = identity_role_parse(request->role, &role, &err);
    if (rc == 0)
        rc = identity_revoke(service->identity, role, request->name, state_now_ms(service->state),
                             identity_put_token, service, &credential, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    assert(credential);
    store_put_credential(service->state->options.store, credential);
    history_tell(service->state, "revoked", "", role == IDENTITY_WORKER ? credential->name : "",
                 NULL, "%s %s was revoked by %s", request->role, credential->name,
                 rpc_call_envelope(call)->caller);
    if (role == IDENTITY_WORKER)
        membership_expel(service->state->membership, credential->name, "its credential was revoked",
                         state_now_ms(service->state), &service->state->happened);
    Gimbal__RevokeReply reply = GIMBAL__REVOKE_REPLY__INIT;
    turn_run(service->state);
    rpc_server_dismiss(service->server, role == IDENTITY_WORKER ? RPC_WORKER : RPC_USER,
                       credential->name, "the caller was revoked");
    rpc_call_reply(call, &reply.base);
}

static Gimbal__CredentialStatus *credential_to_wire(const struct identity_credential *credential)
{
    Gimbal__CredentialStatus *status = xcalloc(1, sizeof *status);
    gimbal__credential_status__init(status);
    status->role = xstrdup(identity_role_names[credential->role]);
    status->name = xstrdup(credential->name);
    status->issued_unix_ms = credential->issued_ms;
    status->revoked_unix_ms = credential->revoked_ms;
    return status;
}

static Gimbal__TokenStatus *token_to_wire(const struct identity_token *token)
{
    Gimbal__TokenStatus *status = xcalloc(1, sizeof *status);
    gimbal__token_status__init(status);
    status->id = xstrdup(token->id);
    status->role = xstrdup(identity_role_names[token->role]);
    status->name = xstrdup(token->name);
    status->issued_unix_ms = token->issued_ms;
    status->expires_unix_ms = token->expires_ms;
    status->uses_left = token->uses_left;
    return status;
}

static void identity_list(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const struct identity *identity = service->identity;
    if (identity_refuse_plain(call))
        return;
    Gimbal__ListCredentialsReply *reply = xcalloc(1, sizeof *reply);
    gimbal__list_credentials_reply__init(reply);
    reply->n_credentials = identity_credential_count(identity);
    reply->n_tokens = identity_token_count(identity);
    reply->credentials = xcalloc(reply->n_credentials, sizeof(Gimbal__CredentialStatus *));
    reply->tokens = xcalloc(reply->n_tokens, sizeof(Gimbal__TokenStatus *));
    for (size_t i = 0; i < reply->n_credentials; i++)
        reply->credentials[i] = credential_to_wire(identity_credential_at(identity, i));
    for (size_t i = 0; i < reply->n_tokens; i++)
        reply->tokens[i] = token_to_wire(identity_token_at(identity, i));
    rpc_call_reply(call, &reply->base);
    gimbal__list_credentials_reply__free_unpacked(reply, NULL);
}

int service_register_tokens(struct service *service, const char *path, struct error *err)
{
    struct identity_agreed tokens = {state_now_ms(service->state), identity_put_token, service};
    int rc = identity_register_agreed(service->identity, path, &tokens, err);
    if (rc < 0)
        return rc;
    turn_run(service->state);
    return turn_commit(service->state, err);
}

const struct service_handler identity_handlers[] = {
    {COORDINATOR_ISSUE_TOKEN, identity_issue_token},
    {COORDINATOR_JOIN, identity_join_call},
    {COORDINATOR_REVOKE, identity_revoke_call},
    {COORDINATOR_LIST_CREDENTIALS, identity_list},
    {0, NULL},
};
