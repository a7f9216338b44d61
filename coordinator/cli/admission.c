/* admission.c - the calls of the identity service, and what the commands print about them. */
#include "coordinator/cli/admission.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "common/trust/credential.h"
#include "common/trust/secret.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_token(const struct common *common, const Gimbal__IssueTokenReply *reply,
                        bool with_text)
{
    json_t *members;
    if (common->output < OUTPUT_JSON) {
        if (with_text)
            puts(reply->token);
        return;
    }
    members = json_pack("{s:I}", "expiresUnixSeconds", (json_int_t)(reply->expires_unix_ms / 1000));
    if (with_text)
        json_object_set_new(members, "token", json_string(reply->token));
    output_print_object((enum output)common->output, resource_object("JoinToken", members), stdout);
}

int admission_issue(const struct common *common, const struct admission_token *wanted,
                    struct error *err)
{
    Gimbal__IssueTokenRequest request = GIMBAL__ISSUE_TOKEN_REQUEST__INIT;
    ProtobufCMessage *message;
    request.role = (char *)wanted->role;
    request.name = (char *)(wanted->name ? wanted->name : "");
    request.ttl_ms = (uint64_t)(wanted->ttl_s * 1000);
    request.uses = (uint32_t)wanted->uses;
    int code = client_call_once(common, COORDINATOR_ISSUE_TOKEN, &request.base, &message, err);
    if (code != EXIT_DONE)
        return code;
    Gimbal__IssueTokenReply *reply = (Gimbal__IssueTokenReply *)message;
    int rc = 0;
    if (wanted->file) {
        char *line = xasprintf("%s\n", reply->token);
        rc = secret_write(wanted->file, line, err);
        secret_free(line);
    }
    if (rc == 0)
        print_token(common, reply, !wanted->file);
    explicit_bzero(reply->token, strlen(reply->token));
    message_free(message);
    return exit_of_errno(rc);
}

static int change_token(struct client *client, char *token, const struct credential *credential,
                        struct error *err)
{
    Gimbal__JoinRequest request = GIMBAL__JOIN_REQUEST__INIT;
    ProtobufCMessage *message;
    request.token = token;
    request.credential = (char *)credential->secret;
    int code = client_call(client, COORDINATOR_JOIN, &request.base, 0, &message, err);
    if (code == EXIT_DONE)
        message_free(message);
    return code;
}

static int join_as(const struct common *common, char *token, const struct credential *credential,
                   struct error *err)
{
    struct client client = {0};
    int code = client_open_stranger(common, credential->name, &client, err);
    if (code == EXIT_DONE)
        code = change_token(&client, token, credential, err);
    client_close(&client);
    return code;
}

int admission_join(const struct common *common, const char *token_file, const char *name,
                   struct error *err)
{
    struct credential credential;
    char *path = client_credential_path(common), *token;
    if (!path)
        return error_set(err, EXIT_USAGE,
                         "needs --tls DIR, or GIMBAL_TLS: the user's folder of "
                         "'gimbal cluster init'");
    int code = exit_of_errno(credential_read_token(token_file, &token, err));
    if (code == EXIT_DONE) {
        code =
            exit_of_errno(credential_offer(path, name ? name : client_login(), &credential, err));
        if (code == EXIT_DONE)
            code = join_as(common, token, &credential, err);
        secret_free(token);
    }
    if (code == EXIT_DONE)
        code = exit_of_errno(credential_keep(path, &credential, err));
    if (code == EXIT_DONE && !common->quiet)
        fprintf(stderr, "joined as '%s'; the credential is in %s\n", credential.name, path);
    explicit_bzero(&credential, sizeof credential);
    free(path);
    return code;
}

int admission_revoke(const struct common *common, const char *role, const char *name,
                     struct error *err)
{
    Gimbal__RevokeRequest request = GIMBAL__REVOKE_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.role = (char *)role;
    request.name = (char *)name;
    int code = client_call_once(common, COORDINATOR_REVOKE, &request.base, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    return code;
}

static json_t *list_json(const Gimbal__ListCredentialsReply *reply)
{
    json_t *items = json_array();
    for (size_t i = 0; i < reply->n_credentials; i++) {
        const Gimbal__CredentialStatus *status = reply->credentials[i];
        json_array_append_new(
            items,
            resource_object("Credential", json_pack("{s:s, s:s, s:I, s:b}", "role", status->role,
                                                    "name", status->name, "issuedUnixSeconds",
                                                    (json_int_t)(status->issued_unix_ms / 1000),
                                                    "revoked", status->revoked_unix_ms != 0)));
    }
    for (size_t i = 0; i < reply->n_tokens; i++) {
        const Gimbal__TokenStatus *status = reply->tokens[i];
        json_array_append_new(
            items, resource_object(
                       "JoinToken",
                       json_pack("{s:s, s:s, s:s, s:I, s:I, s:i}", "id", status->id, "role",
                                 status->role, "name", status->name, "issuedUnixSeconds",
                                 (json_int_t)(status->issued_unix_ms / 1000), "expiresUnixSeconds",
                                 (json_int_t)(status->expires_unix_ms / 1000), "usesLeft",
                                 (int)status->uses_left)));
    }
    return items;
}

static void add_time(struct table *table, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    char text[32] = "";
    if (unix_ms && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    table_add(table, "%s", text);
}

static const char *token_state(const Gimbal__TokenStatus *status)
{
    if (status->uses_left == 0)
        return "USED";
    return status->expires_unix_ms / 1000 <= (uint64_t)time(NULL) ? "EXPIRED" : "OPEN";
}

static void print_table(const struct common *common, const Gimbal__ListCredentialsReply *reply)
{
    static const struct column columns[] = {
        {"KIND"}, {"ROLE"}, {"NAME"}, {"STATE"}, {"ISSUED"}, {"UNTIL"}, {"USES", .right = true}};
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < reply->n_credentials; i++) {
        const Gimbal__CredentialStatus *status = reply->credentials[i];
        table_add(table, "credential");
        table_add(table, "%s", status->role);
        table_add(table, "%s", status->name);
        table_add(table, "%s", status->revoked_unix_ms ? "REVOKED" : "VALID");
        add_time(table, status->issued_unix_ms);
        add_time(table, status->revoked_unix_ms);
        table_add(table, "%s", "");
    }
    for (size_t i = 0; i < reply->n_tokens; i++) {
        const Gimbal__TokenStatus *status = reply->tokens[i];
        table_add(table, "token");
        table_add(table, "%s", status->role);
        table_add(table, "%s", status->name);
        table_add(table, "%s", token_state(status));
        add_time(table, status->issued_unix_ms);
        add_time(table, status->expires_unix_ms);
        table_add(table, "%" PRIu32, status->uses_left);
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

int admission_list(const struct common *common, struct error *err)
{
    Gimbal__ListCredentialsRequest request = GIMBAL__LIST_CREDENTIALS_REQUEST__INIT;
    ProtobufCMessage *message;
    int code = client_call_once(common, COORDINATOR_LIST_CREDENTIALS, &request.base, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListCredentialsReply *reply = (const Gimbal__ListCredentialsReply *)message;
    if (common->output >= OUTPUT_JSON)
        output_print_list((enum output)common->output, "AdmissionList", "items", list_json(reply),
                          stdout);
    else
        print_table(common, reply);
    message_free(message);
    return EXIT_DONE;
}
