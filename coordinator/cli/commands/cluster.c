/* cluster.c - `gimbal cluster`: whom a cluster with TLS trusts: its certificates, tokens and
 * credentials; and copies of what its coordinator has stored. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "common/trust/secret.h"
#include "coordinator/cli/authority.h"
#include "coordinator/identity/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAYS_STANDARD 365
#define TTL_S_STANDARD 3600.0
#define HOSTS_MAX 34
#define ARGUMENTS_MAX 63

struct init_values {
    const char *host;
    int64_t days; /* 0: not given */
    bool renew;
};

static const struct flag init_flags[] = {
    {"host", 0, FLAG_TEXT, offsetof(struct init_values, host), "HOSTS",
     "names of the coordinator, separated by commas (this host, loopback)"},
    {"days", 0, FLAG_NUMBER, offsetof(struct init_values, days), "N",
     "how long certificates are valid (365)", .least = 1, .greatest = AUTHORITY_DAYS},
    {"renew", 0, FLAG_SWITCH, offsetof(struct init_values, renew), NULL,
     "issue new certificates from the authorities in DIR/ca"},
    {.name = NULL},
};

/* Split "a,b" into a NULL-terminated array that borrows from text, which is modified. */
static int init_split_hosts(char *text, const char *hosts[HOSTS_MAX], struct error *err)
{
    size_t count = 0;
    for (char *host; (host = strsep(&text, ","));) {
        if (count + 1 == HOSTS_MAX)
            return error_set(err, EXIT_INPUT, "--host: too many names; at most %d", HOSTS_MAX - 1);
        hosts[count++] = host;
    }
    hosts[count] = NULL;
    return EXIT_DONE;
}

static void init_say_what_to_do(const char *directory)
{
    fprintf(stderr,
            "%s/coordinator  for gimbal-coordinator --tls DIR\n"
            "%s/worker       for gimbal-worker --tls DIR, on every node\n"
            "%s/user         for gimbal --tls DIR, for everybody who submits jobs\n"
            "%s/admin        for gimbal --tls DIR, for those who drain, revoke and issue tokens\n"
            "%s/ca           signs new certificates: keep it offline, and leave no copy here\n",
            directory, directory, directory, directory, directory);
}

static int init_run(const struct invocation *invocation, struct error *err)
{
    const struct init_values *values = invocation->values;
    char host[256] = "localhost";
    const char *hosts[HOSTS_MAX] = {host, "localhost", "127.0.0.1", "::1", NULL};
    struct authority_options options = {
        .directory = invocation->arguments[0],
        .hosts = hosts,
        .days = values->days ? (unsigned)values->days : DAYS_STANDARD,
        .now_s = (int64_t)time(NULL),
    };
    char *given = values->host ? xstrdup(values->host) : NULL;
    int code = given ? init_split_hosts(given, hosts, err) : EXIT_DONE;
    if (gethostname(host, sizeof host - 1) < 0)
        snprintf(host, sizeof host, "localhost");
    if (values->renew && !given)
        options.hosts = NULL; /* keep those it has */
    if (code == EXIT_DONE) {
        int rc = values->renew ? authority_renew(&options, err) : authority_create(&options, err);
        code = rc == -EEXIST ? EXIT_PRECONDITION : exit_of_errno(rc);
    }
    if (code == EXIT_DONE && !invocation->common.quiet)
        init_say_what_to_do(options.directory);
    free(given);
    return code;
}

const struct command command_cluster_init = {
    .name = "cluster init",
    .summary = "Make certificates for the coordinator, workers, users and administrators",
    .arguments = "DIR",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = init_flags,
    .values_size = sizeof(struct init_values),
    .run = init_run,
};

struct token_values {
    const char *name, *file;
    int64_t uses; /* 0: not given */
    double ttl_s;
};

static const struct flag token_flags[] = {
    {"name", 0, FLAG_TEXT, offsetof(struct token_values, name), "NAME",
     "only for this one, even if it has joined before"},
    {"ttl", 0, FLAG_TIME, offsetof(struct token_values, ttl_s), "TIME", "how long it lasts (1h)",
     .greatest = IDENTITY_TTL_MS_MAX / 1000},
    {"uses", 0, FLAG_NUMBER, offsetof(struct token_values, uses), "N",
     "how many may join with it (1)", .least = 1, .greatest = 10000},
    {"file", 0, FLAG_TEXT, offsetof(struct token_values, file), "FILE",
     "write it to a file that only its owner can read"},
    {.name = NULL},
};

static void token_print(const struct common *common, const Gimbal__IssueTokenReply *reply,
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

static int token_run(const struct invocation *invocation, struct error *err)
{
    const struct token_values *values = invocation->values;
    Gimbal__IssueTokenRequest request = GIMBAL__ISSUE_TOKEN_REQUEST__INIT;
    ProtobufCMessage *message;
    if (values->name && !*values->name)
        return error_set(err, EXIT_USAGE,
                         "--name is empty: leave it out for a token that anybody may use");
    request.role = invocation->arguments[0];
    request.name = (char *)(values->name ? values->name : "");
    request.ttl_ms = (uint64_t)((values->ttl_s > 0 ? values->ttl_s : TTL_S_STANDARD) * 1000);
    request.uses = values->uses ? (uint32_t)values->uses : 1;
    int code = client_call_once(&invocation->common, COORDINATOR_ISSUE_TOKEN, &request.base,
                                &message, err);
    if (code != EXIT_DONE)
        return code;
    Gimbal__IssueTokenReply *reply = (Gimbal__IssueTokenReply *)message;
    int rc = 0;
    if (values->file) {
        char *line = xasprintf("%s\n", reply->token);
        rc = secret_write(values->file, line, err);
        secret_free(line);
    }
    if (rc == 0)
        token_print(&invocation->common, reply, !values->file);
    explicit_bzero(reply->token, strlen(reply->token));
    message_free(message);
    return exit_of_errno(rc);
}

const struct command command_cluster_token = {
    .name = "cluster token",
    .summary = "Issue a token, with which a worker or a user joins",
    .arguments = "worker|user",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = token_flags,
    .values_size = sizeof(struct token_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = token_run,
};

struct join_values {
    const char *name;
};

static const struct flag join_flags[] = {
    {"name", 0, FLAG_TEXT, offsetof(struct join_values, name), "NAME", "join as this (login name)"},
    {.name = NULL},
};

static int join_change_token(struct client *client, char *token,
                             const struct credential *credential, struct error *err)
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
        code = join_change_token(&client, token, credential, err);
    client_close(&client);
    return code;
}

/* Exchange the token in the file for a credential, which is kept beside the certificates. */
static int join_run(const struct invocation *invocation, struct error *err)
{
    const struct join_values *values = invocation->values;
    const struct common *common = &invocation->common;
    const char *name = values->name ? values->name : client_login();
    struct credential credential;
    char *path = client_credential_path(common), *token;
    if (!path)
        return error_set(err, EXIT_USAGE,
                         "needs --tls DIR, or GIMBAL_TLS: the user's folder of "
                         "'gimbal cluster init'");
    int code = exit_of_errno(credential_read_token(invocation->arguments[0], &token, err));
    if (code == EXIT_DONE) {
        code = exit_of_errno(credential_offer(path, name, &credential, err));
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

const struct command command_cluster_join = {
    .name = "cluster join",
    .summary = "Join as a user, with a token from an administrator",
    .arguments = "TOKEN-FILE",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = join_flags,
    .values_size = sizeof(struct join_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = join_run,
};

static int revoke_run(const struct invocation *invocation, struct error *err)
{
    Gimbal__RevokeRequest request = GIMBAL__REVOKE_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.role = invocation->arguments[0];
    request.name = invocation->arguments[1];
    int code =
        client_call_once(&invocation->common, COORDINATOR_REVOKE, &request.base, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    return code;
}

const struct command command_cluster_revoke = {
    .name = "cluster revoke",
    .summary = "Exclude a worker or a user that has joined",
    .arguments = "worker|user NAME",
    .arguments_min = 2,
    .arguments_max = 2,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = revoke_run,
};

static json_t *cluster_list_json(const Gimbal__ListCredentialsReply *reply)
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

static void cluster_list_add_time(struct table *table, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    char text[32] = "";
    if (unix_ms && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    table_add(table, "%s", text);
}

static const char *cluster_list_token_state(const Gimbal__TokenStatus *status)
{
    if (status->uses_left == 0)
        return "USED";
    return status->expires_unix_ms / 1000 <= (uint64_t)time(NULL) ? "EXPIRED" : "OPEN";
}

static void cluster_list_print_table(const struct common *common,
                                     const Gimbal__ListCredentialsReply *reply)
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
        cluster_list_add_time(table, status->issued_unix_ms);
        cluster_list_add_time(table, status->revoked_unix_ms);
        table_add(table, "%s", "");
    }
    for (size_t i = 0; i < reply->n_tokens; i++) {
        const Gimbal__TokenStatus *status = reply->tokens[i];
        table_add(table, "token");
        table_add(table, "%s", status->role);
        table_add(table, "%s", status->name);
        table_add(table, "%s", cluster_list_token_state(status));
        cluster_list_add_time(table, status->issued_unix_ms);
        cluster_list_add_time(table, status->expires_unix_ms);
        table_add(table, "%" PRIu32, status->uses_left);
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static int cluster_list_run(const struct invocation *invocation, struct error *err)
{
    const struct common *common = &invocation->common;
    Gimbal__ListCredentialsRequest request = GIMBAL__LIST_CREDENTIALS_REQUEST__INIT;
    ProtobufCMessage *message;
    int code = client_call_once(common, COORDINATOR_LIST_CREDENTIALS, &request.base, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListCredentialsReply *reply = (const Gimbal__ListCredentialsReply *)message;
    if (common->output >= OUTPUT_JSON)
        output_print_list((enum output)common->output, "AdmissionList", "items",
                          cluster_list_json(reply), stdout);
    else
        cluster_list_print_table(common, reply);
    message_free(message);
    return EXIT_DONE;
}

const struct command command_cluster_list = {
    .name = "cluster list",
    .summary = "List who has joined, and the tokens that were issued",
    .arguments = "",
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = cluster_list_run,
};

/* Fetch the next piece and append it to `out`. *more: there are more pieces. An enum exit_code. */
static int backup_fetch_piece(struct client *client, Gimbal__BackupRequest *request, FILE *out,
                              bool *more, struct error *err)
{
    ProtobufCMessage *message;
    int code = client_call(client, COORDINATOR_BACKUP, &request->base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__BackupReply *reply = (const Gimbal__BackupReply *)message;
    size_t length = reply->piece.len;
    if (length == 0 || length > reply->size_bytes - request->offset)
        code = error_set(err, EXIT_INTERNAL, "the coordinator sent a piece of %zu bytes", length);
    else if (fwrite(reply->piece.data, 1, length, out) != length)
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    request->copy = reply->copy;
    request->offset += length;
    *more = request->offset < reply->size_bytes;
    message_free(message);
    return code;
}

static int backup_fetch(const struct common *common, FILE *out, uint64_t *size, struct error *err)
{
    struct client client = {0};
    Gimbal__BackupRequest request = GIMBAL__BACKUP_REQUEST__INIT;
    int code = client_open(common, &client, err);
    for (bool more = true; code == EXIT_DONE && more;)
        code = backup_fetch_piece(&client, &request, out, &more, err);
    client_close(&client);
    *size = request.offset;
    if (code == EXIT_DONE && (fflush(out) != 0 || fsync(fileno(out)) < 0))
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    return code;
}

/* The file, which only its owner can read, appears complete or not at all. */
static int backup_run(const struct invocation *invocation, struct error *err)
{
    const struct common *common = &invocation->common;
    const char *path = invocation->arguments[0];
    char *part = xasprintf("%s.part", path), text[32];
    uint64_t size = 0;
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), code;
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        code = error_set(err, exit_of_errno(-errno), "'%s': %s", part, strerror(errno));
        free(part);
        return code;
    }
    code = backup_fetch(common, out, &size, err);
    fclose(out);
    if (code == EXIT_DONE && (rename(part, path) < 0 || folder_sync_above(path) < 0))
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    if (code == EXIT_IO)
        error_prefix(err, 0, "'%s'", path);
    if (code != EXIT_DONE)
        unlink(part);
    else if (!common->quiet)
        fprintf(stderr, "%s: %s\n", path, units_print_bytes(text, sizeof text, (double)size));
    free(part);
    return code;
}

const struct command command_cluster_backup = {
    .name = "cluster backup",
    .summary = "Save a copy of what the coordinator has stored, while it runs",
    .arguments = "FILE",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = backup_run,
};

/* Become gimbal-coordinator --restore, which knows where its store is. Returns only on failure. */
static int restore_run(const struct invocation *invocation, struct error *err)
{
    size_t count = (size_t)invocation->argument_count;
    char *program;
    int rc = sibling_path("gimbal-coordinator", &program, err);
    if (rc < 0)
        return exit_of_errno(rc);
    char **argv = xcalloc(count + 3, sizeof *argv);
    argv[0] = program;
    argv[1] = (char *)"--restore";
    memcpy(argv + 2, invocation->arguments, count * sizeof *argv);
    execv(program, argv);
    int code = error_set(err, EXIT_FAILED, "%s: %s", program, strerror(errno));
    free(argv);
    free(program);
    return code;
}

const struct command command_cluster_restore = {
    .name = "cluster restore",
    .summary = "Give a coordinator that does not run the copy as its store",
    .arguments = "FILE [-- FLAGS OF GIMBAL-COORDINATOR]",
    .arguments_min = 1,
    .arguments_max = ARGUMENTS_MAX,
    .run = restore_run,
};

static const struct command *const cluster_below[] = {
    &command_cluster_backup,  &command_cluster_init,
    &command_cluster_join,    &command_cluster_list,
    &command_cluster_restore, &command_cluster_revoke,
    &command_cluster_token,   NULL};

const struct command command_cluster = {
    .name = "cluster",
    .summary = "Set up TLS, manage who may join, back up the coordinator: init, token, join, "
               "revoke, list, backup, restore",
    .arguments = "init|token|join|revoke|list|backup|restore ...",
    .below = cluster_below,
};
