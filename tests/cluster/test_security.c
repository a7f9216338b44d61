/* test_security.c - a real coordinator with TLS: who is refused, in which words, and that nobody
 * else minds. What TLS itself refuses, tests/common/rpc/test_tls.c has; what
 * files and programs make of it, test_admission.c. */
#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "common/rpc/streams.h"
#include "tests/cluster/gate.h"
#include "tests/support/suite.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define HOUR_MS 3600000
#define JOB                                                                                        \
    "apiVersion: gimbal/v1\nname: tiny\n"                                                          \
    "model: {family: gpt, layers: 2, hidden: 64, heads: 4, seq: 64}\n"                             \
    "data: {text: [/usr/share/games/fortunes/riddles]}\n"                                          \
    "train: {steps: 5, global_batch: 16, lr: 1.0e-3}\n"

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

static Gimbal__HardwareReport *report_of(const char *node)
{
    struct hardware_report *report = hardware_report_create(node, "boot-1", "EPYC", "0-63");
    struct hardware_device device = {
        .kind = HARDWARE_CPU, .name = "EPYC", .cpuset = "0-3", .cores = 4, .memory_bytes = 1 << 30};
    hardware_set_text(&report->address, "127.0.0.1");
    report->cores = 4;
    report->memory_bytes = 1 << 30;
    hardware_report_add_device(report, &device);
    Gimbal__HardwareReport *message = hardware_report_to_wire(report);
    hardware_report_destroy(report);
    return message;
}

/* What a worker does first ends so. */
static void expect_report(struct rpc_client *client, const char *node, enum rpc_status status,
                          const char *said)
{
    Gimbal__HardwareReport *report = report_of(node);
    gate_expect(client, COORDINATOR_REPORT_HARDWARE, report, status, said);
    gimbal__hardware_report__free_unpacked(report, NULL);
}

static void expect_list(struct rpc_client *client, enum rpc_status status, const char *said)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    gate_expect(client, COORDINATOR_LIST_NODES, &request, status, said);
}

static void expect_no_join(enum bundle_role role, const char *name, enum rpc_status status,
                           const char *said)
{
    enum rpc_status got = gate_join(&gate, role, name, token, credential, &words);
    ck_assert_msg(got == status, "%s: %s", rpc_status_name(got), words.text);
    ck_assert_msg(strstr(words.text, said) != NULL, "%s", words.text);
}

START_TEST(a_worker_and_a_user_that_have_joined_are_served)
{
    struct rpc_client *worker = gate_member(&gate, BUNDLE_WORKER, "node-a", credential);
    struct rpc_client *user = gate_member(&gate, BUNDLE_USER, "ada", credential);
    expect_report(worker, "node-a", RPC_OK, "");
    expect_list(user, RPC_OK, "");
    rpc_client_close(worker);
    rpc_client_close(user);
}
END_TEST

START_TEST(a_certificate_without_a_credential_is_not_enough)
{
    struct rpc_client *worker = gate_client(&gate, BUNDLE_WORKER, "node-a", NULL);
    struct rpc_client *user = gate_client(&gate, BUNDLE_USER, "ada", NULL);
    expect_report(worker, "node-a", RPC_UNAUTHENTICATED, "shows no credential");
    expect_list(user, RPC_UNAUTHENTICATED, "user 'ada' shows no credential");
    rpc_client_close(worker);
    rpc_client_close(user);
}
END_TEST

START_TEST(a_wrong_credential_is_refused)
{
    rpc_client_close(gate_member(&gate, BUNDLE_WORKER, "node-a", credential));
    credential[0] = credential[0] == '0' ? '1' : '0';
    struct rpc_client *worker = gate_client(&gate, BUNDLE_WORKER, "node-a", credential);
    expect_report(worker, "node-a", RPC_UNAUTHENTICATED, "is not that of worker 'node-a'");
    rpc_client_close(worker);
}
END_TEST

START_TEST(a_credential_of_another_role_is_refused)
{
    rpc_client_close(gate_member(&gate, BUNDLE_USER, "node-a", credential));
    struct rpc_client *worker = gate_client(&gate, BUNDLE_WORKER, "node-a", credential);
    expect_report(worker, "node-a", RPC_UNAUTHENTICATED, "is not that of worker 'node-a'");
    rpc_client_close(worker);
}
END_TEST

START_TEST(one_worker_cannot_call_as_another)
{
    char other[128];
    rpc_client_close(gate_member(&gate, BUNDLE_WORKER, "node-b", other));
    rpc_client_close(gate_member(&gate, BUNDLE_WORKER, "node-a", credential));
    struct rpc_client *worker = gate_client(&gate, BUNDLE_WORKER, "node-b", credential);
    expect_report(worker, "node-b", RPC_UNAUTHENTICATED, "is not that of worker 'node-b'");
    rpc_client_close(worker);
}
END_TEST

START_TEST(one_worker_cannot_speak_for_another)
{
    struct rpc_client *other = gate_member(&gate, BUNDLE_WORKER, "node-b", credential);
    struct rpc_client *worker = gate_member(&gate, BUNDLE_WORKER, "node-a", credential);
    Gimbal__HeartbeatRequest heartbeat = GIMBAL__HEARTBEAT_REQUEST__INIT;
    expect_report(other, "node-b", RPC_OK, "");
    expect_report(worker, "node-b", RPC_PERMISSION_DENIED, "cannot speak for node 'node-b'");
    heartbeat.node = (char *)"node-b";
    gate_expect(worker, COORDINATOR_HEARTBEAT, &heartbeat, RPC_PERMISSION_DENIED,
                "cannot speak for node 'node-b'");
    rpc_client_close(worker);
    rpc_client_close(other);
}
END_TEST

static void take_end(void *data, const struct rpc_watch_event *event)
{
    enum rpc_status *ended = data;
    if (event->status != RPC_OK)
        *ended = event->status;
}

START_TEST(a_revoked_worker_is_out_at_once)
{
    struct rpc_client *worker = gate_member(&gate, BUNDLE_WORKER, "node-a", credential);
    enum rpc_status ended = RPC_OK;
    expect_report(worker, "node-a", RPC_OK, "");
    struct rpc_watch *watch =
        rpc_watch_start(worker, COORDINATOR_WATCH_ASSIGNMENTS, "assignments", 0, take_end, &ended);
    gate_put_out(&gate, "worker", "node-a");
    while (ended == RPC_OK) /* its poll is answered, or refused: nothing more is told to it */
        ck_assert_uint_gt(rpc_client_poll(worker, 10000), 0);
    expect_report(worker, "node-a", RPC_PERMISSION_DENIED, "worker 'node-a' was revoked");
    rpc_watch_stop(watch);
    rpc_client_close(worker);
}
END_TEST

START_TEST(a_revoked_name_comes_back_only_by_a_token_for_it)
{
    rpc_client_close(gate_member(&gate, BUNDLE_USER, "ada", credential));
    gate_put_out(&gate, "user", "ada");
    gate_issue(&gate, "user", "", HOUR_MS, 1, token);
    expect_no_join(BUNDLE_USER, "ada", RPC_PERMISSION_DENIED, "comes back only by a token for it");
    gate_issue(&gate, "user", "ada", HOUR_MS, 1, token);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_USER, "ada", token, credential, &words), RPC_OK);
    struct rpc_client *user = gate_client(&gate, BUNDLE_USER, "ada", credential);
    expect_list(user, RPC_OK, "");
    rpc_client_close(user);
}
END_TEST

START_TEST(a_token_is_not_used_twice)
{
    gate_issue(&gate, "worker", "", HOUR_MS, 1, token);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-a", token, credential, &words), RPC_OK);
    expect_no_join(BUNDLE_WORKER, "node-b", RPC_UNAUTHENTICATED, "was used up");
    expect_no_join(BUNDLE_WORKER, "node-a", RPC_UNAUTHENTICATED, "was used up");
}
END_TEST

START_TEST(an_expired_token_is_refused)
{
    gate_issue(&gate, "worker", "", 1, 1, token);
    poll(NULL, 0, 5); /* longer than it lasts */
    expect_no_join(BUNDLE_WORKER, "node-a", RPC_UNAUTHENTICATED, "has expired");
}
END_TEST

START_TEST(a_token_of_another_role_is_refused)
{
    gate_issue(&gate, "user", "", HOUR_MS, 1, token);
    expect_no_join(BUNDLE_WORKER, "node-a", RPC_UNAUTHENTICATED, "no such token for a worker");
}
END_TEST

START_TEST(a_token_for_another_name_is_refused)
{
    gate_issue(&gate, "worker", "node-a", HOUR_MS, 1, token);
    expect_no_join(BUNDLE_WORKER, "node-b", RPC_PERMISSION_DENIED, "is for worker 'node-a'");
}
END_TEST

START_TEST(a_name_that_has_joined_is_not_taken_over)
{
    struct rpc_client *worker = gate_member(&gate, BUNDLE_WORKER, "node-a", credential);
    char kept[128];
    memcpy(kept, credential, sizeof kept);
    gate_issue(&gate, "worker", "", HOUR_MS, 1, token);
    expect_no_join(BUNDLE_WORKER, "node-a", RPC_ALREADY_EXISTS, "has joined already");
    expect_report(worker, "node-a", RPC_OK, "");
    rpc_client_close(worker);
}
END_TEST

START_TEST(garbage_is_no_token)
{
    snprintf(token, sizeof token, "open sesame");
    expect_no_join(BUNDLE_WORKER, "node-a", RPC_UNAUTHENTICATED, "this is no token");
}
END_TEST

START_TEST(nobody_but_an_administrator_lets_others_in)
{
    struct rpc_client *worker = gate_member(&gate, BUNDLE_WORKER, "node-a", credential);
    struct rpc_client *user = gate_member(&gate, BUNDLE_USER, "ada", credential);
    struct rpc_client *both[] = {worker, user};
    Gimbal__IssueTokenRequest issue = GIMBAL__ISSUE_TOKEN_REQUEST__INIT;
    Gimbal__RevokeRequest out = GIMBAL__REVOKE_REQUEST__INIT;
    Gimbal__DrainRequest drain = GIMBAL__DRAIN_REQUEST__INIT;
    Gimbal__ListCredentialsRequest list = GIMBAL__LIST_CREDENTIALS_REQUEST__INIT;
    for (size_t i = 0; i < 2; i++) {
        gate_expect(both[i], COORDINATOR_ISSUE_TOKEN, &issue, RPC_PERMISSION_DENIED, "not open to");
        gate_expect(both[i], COORDINATOR_REVOKE, &out, RPC_PERMISSION_DENIED, "not open to");
        gate_expect(both[i], COORDINATOR_DRAIN, &drain, RPC_PERMISSION_DENIED, "not open to");
        gate_expect(both[i], COORDINATOR_LIST_CREDENTIALS, &list, RPC_PERMISSION_DENIED,
                    "not open to");
    }
    expect_list(worker, RPC_PERMISSION_DENIED, "not open to");
    expect_report(user, "ada", RPC_PERMISSION_DENIED, "not open to");
    rpc_client_close(worker);
    rpc_client_close(user);
}
END_TEST

START_TEST(an_administrator_may_what_users_may_but_is_no_worker)
{
    struct rpc_client *admin = gate_client(&gate, BUNDLE_ADMIN, "root", NULL);
    Gimbal__JoinRequest join = GIMBAL__JOIN_REQUEST__INIT;
    expect_list(admin, RPC_OK, "");
    expect_report(admin, "root", RPC_PERMISSION_DENIED, "not open to");
    gate_expect(admin, COORDINATOR_JOIN, &join, RPC_FAILED_PRECONDITION, "needs no credential");
    rpc_client_close(admin);
}
END_TEST

/* It waits, since there are no nodes. */
static void submit(struct rpc_client *client, const char *user, enum rpc_status status,
                   const char *said, char job[32])
{
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    ProtobufCMessage *reply;
    spec.yaml = (char *)JOB;
    spec.user = (char *)user;
    request.spec = &spec;
    enum rpc_status got = gate_ask(client, COORDINATOR_SUBMIT, &request, &reply, &words);
    ck_assert_msg(got == status, "%s: %s", rpc_status_name(got), words.text);
    ck_assert_msg(strstr(words.text, said) != NULL, "%s", words.text);
    if (got == RPC_OK)
        snprintf(job, 32, "%s", ((Gimbal__SubmitReply *)reply)->job);
    message_free(reply);
}

START_TEST(a_job_is_its_users_and_nobody_elses)
{
    struct rpc_client *ada = gate_member(&gate, BUNDLE_USER, "ada", credential);
    struct rpc_client *bob = gate_member(&gate, BUNDLE_USER, "bob", credential);
    struct rpc_client *admin = gate_client(&gate, BUNDLE_ADMIN, "root", NULL);
    char first[32], second[32];
    submit(bob, "ada", RPC_PERMISSION_DENIED, "cannot submit a job of user 'ada'", first);
    submit(ada, "", RPC_OK, "", first);
    submit(ada, "ada", RPC_OK, "", second);
    Gimbal__CancelRequest cancel = GIMBAL__CANCEL_REQUEST__INIT;
    cancel.job = first;
    gate_expect(bob, COORDINATOR_CANCEL, &cancel, RPC_PERMISSION_DENIED,
                "only that user and administrators may change it");
    Gimbal__PauseRequest pause = GIMBAL__PAUSE_REQUEST__INIT;
    Gimbal__ResumeRequest resume = GIMBAL__RESUME_REQUEST__INIT;
    pause.job = resume.job = first;
    gate_expect(bob, COORDINATOR_PAUSE, &pause, RPC_PERMISSION_DENIED, "may change it");
    gate_expect(ada, COORDINATOR_PAUSE, &pause, RPC_OK, "");
    gate_expect(bob, COORDINATOR_RESUME, &resume, RPC_PERMISSION_DENIED, "may change it");
    gate_expect(ada, COORDINATOR_RESUME, &resume, RPC_OK, "");
    gate_expect(ada, COORDINATOR_CANCEL, &cancel, RPC_OK, "");
    cancel.job = second;
    gate_expect(admin, COORDINATOR_CANCEL, &cancel, RPC_OK, "");
    rpc_client_close(ada);
    rpc_client_close(bob);
    rpc_client_close(admin);
}
END_TEST

START_TEST(uses_and_credentials_survive_a_killed_coordinator)
{
    gate_issue(&gate, "worker", "", HOUR_MS, 2, token);
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-a", token, credential, &words), RPC_OK);
    gate_kill(&gate);
    gate_start(&gate, NULL);
    struct rpc_client *worker = gate_client(&gate, BUNDLE_WORKER, "node-a", credential);
    expect_report(worker, "node-a", RPC_OK, "");
    ck_assert_int_eq(gate_join(&gate, BUNDLE_WORKER, "node-b", token, credential, &words), RPC_OK);
    gate_kill(&gate);
    gate_start(&gate, NULL);
    expect_no_join(BUNDLE_WORKER, "node-c", RPC_UNAUTHENTICATED, "was used up");
    rpc_client_close(worker);
}
END_TEST

int main(void)
{
    TCase *credentials = tcase_create("credentials"), *tokens = tcase_create("tokens");
    TCase *rights = tcase_create("rights"), *all[] = {credentials, tokens, rights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tcase_add_checked_fixture(all[i], set_up, tear_down);
        tcase_set_timeout(all[i], 60);
    }
    tcase_add_test(credentials, a_worker_and_a_user_that_have_joined_are_served);
    tcase_add_test(credentials, a_certificate_without_a_credential_is_not_enough);
    tcase_add_test(credentials, a_wrong_credential_is_refused);
    tcase_add_test(credentials, a_credential_of_another_role_is_refused);
    tcase_add_test(credentials, one_worker_cannot_call_as_another);
    tcase_add_test(credentials, one_worker_cannot_speak_for_another);
    tcase_add_test(credentials, a_revoked_worker_is_out_at_once);
    tcase_add_test(credentials, a_revoked_name_comes_back_only_by_a_token_for_it);
    tcase_add_test(tokens, a_token_is_not_used_twice);
    tcase_add_test(tokens, an_expired_token_is_refused);
    tcase_add_test(tokens, a_token_of_another_role_is_refused);
    tcase_add_test(tokens, a_token_for_another_name_is_refused);
    tcase_add_test(tokens, a_name_that_has_joined_is_not_taken_over);
    tcase_add_test(tokens, garbage_is_no_token);
    tcase_add_test(tokens, uses_and_credentials_survive_a_killed_coordinator);
    tcase_add_test(rights, nobody_but_an_administrator_lets_others_in);
    tcase_add_test(rights, an_administrator_may_what_users_may_but_is_no_worker);
    tcase_add_test(rights, a_job_is_its_users_and_nobody_elses);
    return suite_run("security", credentials, tokens, rights, NULL);
}
