/* test_admission.c - what the programs make of TLS: the coordinator's log and files, a worker that
 * joins, and the command line that lets it in. */
#include "common/message/message.h"
#include "common/trust/secret.h"
#include "tests/cluster/gate.h"
#include "tests/support/suite.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOUR_MS 3600000
#define EXIT_PERMISSION 77
#define EXIT_CONFIGURATION 78

static struct gate gate;
static char credential[128], token[128];
static struct error words;

static void set_up(void)
{
    gate_open(&gate, NULL);
}

static void tear_down(void)
{
    gate_stop(&gate);
    gate_close(&gate);
}

static size_t count_lines(const char *text, const char *said)
{
    size_t count = 0;
    while ((text = strstr(text, said))) {
        count++;
        text += strlen(said);
    }
    return count;
}

START_TEST(refusals_are_logged_once_and_then_counted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    address.sin_port = htons((uint16_t)atoi(strrchr(gate.address, ':') + 1));
    char bytes[64];
    Gimbal__ListNodesRequest list = GIMBAL__LIST_NODES_REQUEST__INIT;
    struct rpc_client *user = gate_client(&gate, BUNDLE_USER, "ada", NULL);
    for (unsigned i = 0; i < 50; i++)
        gate_expect(user, COORDINATOR_LIST_NODES, &list, RPC_UNAUTHENTICATED,
                    "shows no credential");
    rpc_client_close(user);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(write(fd, "no handshake", 12), 12);
    while (read(fd, bytes, sizeof bytes) > 0) /* until it hangs up */
        ;
    close(fd);
    rpc_client_close(gate_member(&gate, BUNDLE_USER, "bob", credential)); /* after it was counted */
    gate_stop(&gate);
    const char *log = gate.coordinator.err;
    ck_assert_uint_eq(count_lines(log, "ListNodes refused: user 'ada' shows no credential"), 1);
    ck_assert_uint_eq(count_lines(log, "49 more calls were refused"), 1);
    ck_assert_uint_eq(count_lines(log, "1 connections were refused by TLS"), 1);
    gate_start(&gate, NULL);
}
END_TEST

/* Nothing that lets somebody in is in the log or the store. */
START_TEST(secrets_are_written_nowhere)
{
    char *store;
    gate_issue(&gate, "worker", "", HOUR_MS, 1, token);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-a", token, credential, &words), RPC_OK);
    gate_stop(&gate);
    ck_assert_ptr_null(strstr(gate.coordinator.err, token + 17));
    ck_assert_ptr_null(strstr(gate.coordinator.err, credential));
    FILE *file = fopen(gate_path(&gate, "a/store.db"), "re");
    ck_assert_ptr_nonnull(file);
    store = calloc(1, 1 << 20);
    size_t size = fread(store, 1, 1 << 20, file);
    fclose(file);
    ck_assert_ptr_null(memmem(store, size, token + 17, 64));
    ck_assert_ptr_null(memmem(store, size, credential, 64));
    ck_assert_ptr_nonnull(memmem(store, size, token, 16)); /* its id is */
    free(store);
    gate_start(&gate, NULL);
}
END_TEST

#define AGREED "0123456789abcdef.00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

START_TEST(tokens_agreed_upon_are_registered_and_counted_once)
{
    const char *path = gate_path(&gate, "tokens");
    const char *const arguments[] = {"--join-tokens", path, NULL};
    gate_stop(&gate);
    ck_assert_int_eq(
        secret_write(path, "# for the first node\n\nworker " AGREED " 24h 1\n", &words), 0);
    gate_start(&gate, arguments);
    snprintf(token, sizeof token, AGREED);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-a", token, credential, &words), RPC_OK);
    gate_stop(&gate);
    gate_start(&gate, arguments);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-b", token, credential, &words),
                     RPC_UNAUTHENTICATED);
    ck_assert_ptr_nonnull(strstr(words.text, "was used up"));
}
END_TEST

/* Ends of its own, with 78 and one sentence that has these words. */
static void expect_refusal(const char *const *arguments, const char *said)
{
    struct command command;
    const char *line[16] = {COORDINATOR, "--state", gate_path(&gate, "b")};
    for (size_t i = 0; arguments[i]; i++)
        line[3 + i] = arguments[i];
    command_start(&command, line);
    int code = command_finish(&command);
    ck_assert_msg(code == EXIT_CONFIGURATION, "%d: %s", code, command.err);
    ck_assert_msg(strstr(command.err, said) != NULL, "%s", command.err);
    ck_assert_uint_eq(count_lines(command.err, "\n"), 1);
}

/* The same of the start and of --check: nothing but the settings and the bundle is looked at. */
static void expect_both(const char *const *arguments, const char *said)
{
    const char *line[12] = {"--check"};
    for (size_t i = 0; arguments[i]; i++)
        line[1 + i] = arguments[i];
    expect_refusal(arguments, said);
    expect_refusal(line, said);
}

#define LISTEN "--address", "tls+tcp://127.0.0.1:0"

START_TEST(wrong_files_end_the_coordinator_in_words)
{
    const char *own = gate_path(&gate, "c/coordinator"), *tokens = gate_path(&gate, "tokens");
    expect_both((const char *const[]){LISTEN, NULL}, "needs certificates");
    expect_both((const char *const[]){"--tls", own, NULL}, "is without TLS, but tls names");
    expect_both((const char *const[]){LISTEN, "--tls", gate_path(&gate, "c/worker"), NULL},
                "is the bundle of role worker; wanted is that of coordinator");
    expect_both((const char *const[]){LISTEN, "--tls", gate_path(&gate, "none"), NULL},
                "none/tls.crt: No such file");
    expect_both((const char *const[]){"--join-tokens", tokens, NULL}, "without tls");
    ck_assert_int_eq(secret_write(tokens, "worker nonsense 24h 1\n", &words), 0);
    expect_both((const char *const[]){LISTEN, "--tls", own, "--join-tokens", tokens, NULL},
                "tokens:1: this is no token");
    ck_assert_int_eq(chmod(tokens, 0644), 0);
    expect_both((const char *const[]){LISTEN, "--tls", own, "--join-tokens", tokens, NULL},
                "is open to others than its owner");
    ck_assert_int_eq(chmod(gate_path(&gate, "c/coordinator/tls.key"), 0640), 0);
    expect_both((const char *const[]){LISTEN, "--tls", own, NULL},
                "tls.key is open to others than its owner");
}
END_TEST

static int run_worker(struct command *command, const char *join)
{
    const char *line[24] = {WORKER,
                            "--name",
                            "node-a",
                            "--coordinator",
                            gate.address,
                            "--tls",
                            gate_path(&gate, "c/worker"),
                            "--state",
                            gate_path(&gate, "w"),
                            "--executor",
                            EXECUTOR,
                            "--share",
                            "0/2"};
    if (join) {
        line[13] = "--join";
        line[14] = join;
    }
    command_start(command, line);
    return 0;
}

/* Wait until the node is alive. */
static void await_alive(void)
{
    struct rpc_client *admin = gate_client(&gate, BUNDLE_ADMIN, "root", NULL);
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    for (unsigned waited_ms = 0, alive = 0; !alive; waited_ms += 20) {
        ProtobufCMessage *reply;
        ck_assert_uint_lt(waited_ms, 30000);
        ck_assert_int_eq(gate_ask(admin, COORDINATOR_LIST_NODES, &request, &reply, &words), RPC_OK);
        const Gimbal__ListNodesReply *list = (const Gimbal__ListNodesReply *)reply;
        alive = list->n_nodes == 1 && list->nodes[0]->state == GIMBAL__NODE_STATUS__STATE__ALIVE;
        message_free(reply);
        poll(NULL, 0, alive ? 0 : 20);
    }
    rpc_client_close(admin);
}

START_TEST(a_real_worker_joins_once_and_is_itself_from_then_on)
{
    struct command worker;
    struct stat status;
    const char *path = gate_path(&gate, "token");
    run_worker(&worker, NULL);
    ck_assert_int_eq(command_finish(&worker), EXIT_CONFIGURATION);
    ck_assert_msg(strstr(worker.err, "give --join TOKEN-FILE") != NULL, "%s", worker.err);
    gate_issue(&gate, "worker", "", HOUR_MS, 1, token);
    ck_assert_int_eq(secret_write(path, token, &words), 0);
    run_worker(&worker, path);
    await_alive();
    kill(worker.pid, SIGTERM);
    ck_assert_int_eq(command_finish(&worker), 0);
    ck_assert_int_eq(stat(gate_path(&gate, "w/node-a.credential"), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    gate_kill(&gate); /* the node is not known to be alive */
    gate_start(&gate, NULL);
    run_worker(&worker, NULL);
    await_alive();
    gate_put_out(&gate, "worker", "node-a");
    int code = command_finish(&worker);
    ck_assert_msg(code == EXIT_PERMISSION, "%d: %s", code, worker.err);
    ck_assert_msg(strstr(worker.err, "was revoked") != NULL, "%s", worker.err);
    ck_assert_int_eq(unlink(gate_path(&gate, "w/node-a.credential")), 0);
    run_worker(&worker, path);
    ck_assert_int_eq(command_finish(&worker), EXIT_PERMISSION);
    ck_assert_msg(strstr(worker.err, "does not let node 'node-a' join") != NULL, "%s", worker.err);
}
END_TEST

/* gimbal cluster ..., with the address and this folder of certificates. */
static int run_gimbal(struct command *command, const char *folder, const char *const *arguments)
{
    const char *line[16] = {GIMBAL};
    size_t count = 1;
    for (size_t i = 0; arguments[i]; i++)
        line[count++] = arguments[i];
    if (folder) {
        line[count++] = "--tls";
        line[count++] = folder;
        line[count++] = "--address";
        line[count++] = gate.address;
    }
    command_start(command, line);
    return command_finish(command);
}
#define GIMBAL_RUN(folder, ...)                                                                    \
    run_gimbal(&command, folder, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(the_command_line_lets_in_lists_and_puts_out)
{
    struct command command;
    const char *admin = gate_path(&gate, "c/admin"), *user = gate_path(&gate, "c/user");
    const char *file = gate_path(&gate, "token");
    ck_assert_int_eq(GIMBAL_RUN(user, "nodes"), EXIT_CONFIGURATION);
    ck_assert_ptr_nonnull(strstr(command.err, "gimbal cluster join TOKEN-FILE"));
    ck_assert_int_eq(GIMBAL_RUN(admin, "cluster", "token", "user", "--file", file), 0);
    ck_assert_int_eq(GIMBAL_RUN(user, "cluster", "join", file, "--name", "ada"), 0);
    ck_assert_ptr_nonnull(strstr(command.err, "joined as 'ada'"));
    ck_assert_msg(strstr(command.err, "gimbal cluster join:") == NULL, "%s", command.err);
    ck_assert_int_eq(GIMBAL_RUN(user, "nodes"), 0);
    ck_assert_int_eq(GIMBAL_RUN(user, "cluster", "join", file, "--name", "bob"), EXIT_PERMISSION);
    ck_assert_int_eq(GIMBAL_RUN(user, "cluster", "list"), EXIT_PERMISSION);
    ck_assert_int_eq(GIMBAL_RUN(admin, "cluster", "list", "--no-headers"), 0);
    ck_assert_msg(strstr(command.out, "credential  user  ada  VALID") != NULL, "%s", command.out);
    ck_assert_int_eq(GIMBAL_RUN(admin, "cluster", "revoke", "user", "ada"), 0);
    ck_assert_int_eq(GIMBAL_RUN(user, "nodes"), EXIT_PERMISSION);
    ck_assert_msg(strstr(command.err, "user 'ada' was revoked") != NULL, "%s", command.err);
    ck_assert_int_eq(GIMBAL_RUN(gate_path(&gate, "c/worker"), "nodes"), EXIT_CONFIGURATION);
    command_start(&command, (const char *const[]){GIMBAL, "nodes", "--address",
                                                  gate.address + strlen("tls+"), NULL});
    ck_assert_int_eq(command_finish(&command), 69);
    ck_assert_msg(strstr(command.err, "perhaps it listens with TLS: then write tls+tcp://") != NULL,
                  "%s", command.err);
}
END_TEST

START_TEST(certificates_of_another_cluster_are_refused_in_words)
{
    struct command command;
    ck_assert_int_eq(
        GIMBAL_RUN(NULL, "cluster", "init", gate_path(&gate, "other"), "--host", "127.0.0.1"), 0);
    ck_assert_int_eq(GIMBAL_RUN(NULL, "cluster", "init", gate_path(&gate, "other")), 73);
    ck_assert_int_eq(GIMBAL_RUN(gate_path(&gate, "other/admin"), "nodes"), EXIT_PERMISSION);
    ck_assert_msg(strstr(command.err, "no TLS with tls+tcp://127.0.0.1:") != NULL, "%s",
                  command.err);
}
END_TEST

int main(void)
{
    TCase *files = tcase_create("files"), *programs = tcase_create("programs");
    TCase *all[] = {files, programs};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tcase_add_checked_fixture(all[i], set_up, tear_down);
        tcase_set_timeout(all[i], 60);
    }
    tcase_add_test(files, refusals_are_logged_once_and_then_counted);
    tcase_add_test(files, secrets_are_written_nowhere);
    tcase_add_test(files, tokens_agreed_upon_are_registered_and_counted_once);
    tcase_add_test(files, wrong_files_end_the_coordinator_in_words);
    tcase_add_test(programs, a_real_worker_joins_once_and_is_itself_from_then_on);
    tcase_add_test(programs, the_command_line_lets_in_lists_and_puts_out);
    tcase_add_test(programs, certificates_of_another_cluster_are_refused_in_words);
    return suite_run("admission", files, programs, NULL);
}
