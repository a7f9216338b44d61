/* gate.c - starting it, and calling it one call at a time. */
#include "tests/cluster/gate.h"

#include "common/message/message.h"
#include "coordinator/cli/authority.h"
#include "tests/support/suite.h"

#include <check.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define WORDS_MAX 24

const char *gate_path(const struct gate *gate, const char *name)
{
    static char paths[32][128];
    static unsigned next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", gate->directory, name);
    return path;
}

static void make_bundles(struct gate *gate)
{
    const char *const hosts[] = {"127.0.0.1", NULL};
    struct error err = {""};
    struct authority_options options = {
        .directory = gate_path(gate, "c"), .hosts = hosts, .days = 1, .now_s = (int64_t)time(NULL)};
    ck_assert_msg(authority_create(&options, &err) == 0, "%s", err.text);
    for (unsigned role = 0; role < BUNDLE_ROLES; role++) {
        char name[32];
        snprintf(name, sizeof name, "c/%s", bundle_role_name((enum bundle_role)role));
        int rc = bundle_load(gate_path(gate, name), 1u << role, (int64_t)time(NULL),
                             &gate->bundles[role], &err);
        ck_assert_msg(rc == 0, "%s", err.text);
    }
}

/* "worker ADDRESS" is the first of three lines. */
static void read_address(struct gate *gate)
{
    char role[16];
    FILE *file = fopen(gate_path(gate, "address"), "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%15s %95s", role, gate->address), 2);
    ck_assert_str_eq(role, "worker");
    fclose(file);
}

void gate_start(struct gate *gate, const char *const *arguments)
{
    char bytes[4096];
    const char *address = gate_path(gate, "address");
    const char *words[WORDS_MAX] = {COORDINATOR,
                                    "--address",
                                    "tls+tcp://127.0.0.1:0",
                                    "--tls",
                                    gate_path(gate, "c/coordinator"),
                                    "--state",
                                    gate_path(gate, "a"),
                                    "--address-file",
                                    address};
    for (size_t i = 0; arguments && arguments[i]; i++)
        words[9 + i] = arguments[i];
    struct pollfd watch = {.fd = inotify_init1(IN_CLOEXEC), .events = POLLIN};
    ck_assert_int_ge(inotify_add_watch(watch.fd, gate->directory, IN_MOVED_TO), 0);
    unlink(address);
    command_start(&gate->coordinator, words);
    while (access(address, R_OK) < 0) {
        ck_assert_msg(poll(&watch, 1, test_patience_ms(PATIENCE_MS)) == 1,
                      "the coordinator does not listen");
        ck_assert_int_gt(read(watch.fd, bytes, sizeof bytes), 0);
    }
    close(watch.fd);
    read_address(gate);
}

void gate_open(struct gate *gate, const char *const *arguments)
{
    *gate = (struct gate){.directory = "/tmp/gimbal-gate-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(gate->directory));
    make_bundles(gate);
    gate_start(gate, arguments);
}

void gate_kill(struct gate *gate)
{
    kill(gate->coordinator.pid, SIGKILL);
    ck_assert_int_eq(command_finish(&gate->coordinator), 128 + SIGKILL);
}

void gate_stop(struct gate *gate)
{
    kill(gate->coordinator.pid, SIGTERM);
    ck_assert_int_eq(command_finish(&gate->coordinator), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void gate_close(struct gate *gate)
{
    for (unsigned role = 0; role < BUNDLE_ROLES; role++)
        bundle_destroy(gate->bundles[role]);
    nftw(gate->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct rpc_client *gate_client(const struct gate *gate, enum bundle_role role, const char *caller,
                               const char *credential)
{
    static const unsigned ports[] = {
        [BUNDLE_WORKER] = RPC_WORKER, [BUNDLE_USER] = RPC_USER, [BUNDLE_ADMIN] = RPC_ADMIN};
    const struct bundle *bundle = gate->bundles[role];
    struct rpc_tls tls = {bundle->certificate, bundle->key, bundle->authority};
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = gate->address,
                                         .tls = &tls,
                                         .role = ports[role],
                                         .caller = caller,
                                         .credential = credential,
                                         .fail_fast = true};
    struct rpc_client *client;
    struct error err = {""};
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    ck_assert_msg(rpc_client_open(&options, &client, &err) == 0, "%s", err.text);
    gate_expect(client, COORDINATOR_HELLO, &hello, RPC_OK, "");
    return client;
}

enum rpc_status gate_ask(struct rpc_client *client, unsigned method, const void *request,
                         ProtobufCMessage **reply, struct error *words)
{
    const struct rpc_call_options options = {.deadline_ms =
                                                 (uint32_t)test_patience_ms(PATIENCE_MS)};
    ProtobufCMessage *got = NULL;
    words->text[0] = '\0';
    enum rpc_status status = rpc_client_call(client, method, request, &options, &got, words);
    if (reply)
        *reply = got;
    else
        message_free(got);
    return status;
}

void gate_expect(struct rpc_client *client, unsigned method, const void *request,
                 enum rpc_status status, const char *words)
{
    struct error said;
    enum rpc_status got = gate_ask(client, method, request, NULL, &said);
    const char *name = service_coordinator.methods[method].name;
    ck_assert_msg(got == status, "%s: %s: %s", name, rpc_status_name(got), said.text);
    ck_assert_msg(strstr(said.text, words) != NULL, "%s: %s", name, said.text);
}

void gate_issue(const struct gate *gate, const char *role, const char *name, uint64_t ttl_ms,
                uint32_t uses, char token[128])
{
    struct rpc_client *admin = gate_client(gate, BUNDLE_ADMIN, "root", NULL);
    Gimbal__IssueTokenRequest request = GIMBAL__ISSUE_TOKEN_REQUEST__INIT;
    ProtobufCMessage *reply;
    struct error words;
    request.role = (char *)role;
    request.name = (char *)name;
    request.ttl_ms = ttl_ms;
    request.uses = uses;
    enum rpc_status status = gate_ask(admin, COORDINATOR_ISSUE_TOKEN, &request, &reply, &words);
    ck_assert_msg(status == RPC_OK, "%s", words.text);
    snprintf(token, 128, "%s", ((Gimbal__IssueTokenReply *)reply)->token);
    message_free(reply);
    rpc_client_close(admin);
}

enum rpc_status gate_join(const struct gate *gate, enum bundle_role role, const char *name,
                          const char *token, char credential[128], struct error *words)
{
    struct rpc_client *client = gate_client(gate, role, name, NULL);
    Gimbal__JoinRequest request = GIMBAL__JOIN_REQUEST__INIT;
    ProtobufCMessage *reply;
    static unsigned drawn;
    snprintf(credential, 128, "%064x", ++drawn);
    request.token = (char *)token;
    request.credential = credential;
    enum rpc_status status = gate_ask(client, COORDINATOR_JOIN, &request, &reply, words);
    message_free(reply);
    rpc_client_close(client);
    return status;
}

struct rpc_client *gate_member(const struct gate *gate, enum bundle_role role, const char *name,
                               char credential[128])
{
    char token[128];
    struct error words;
    gate_issue(gate, bundle_role_name(role), "", 3600000, 1, token);
    enum rpc_status status = gate_join(gate, role, name, token, credential, &words);
    ck_assert_msg(status == RPC_OK, "%s", words.text);
    return gate_client(gate, role, name, credential);
}

void gate_put_out(const struct gate *gate, const char *role, const char *name)
{
    struct rpc_client *admin = gate_client(gate, BUNDLE_ADMIN, "root", NULL);
    Gimbal__RevokeRequest request = GIMBAL__REVOKE_REQUEST__INIT;
    request.role = (char *)role;
    request.name = (char *)name;
    gate_expect(admin, COORDINATOR_REVOKE, &request, RPC_OK, "");
    rpc_client_close(admin);
}
