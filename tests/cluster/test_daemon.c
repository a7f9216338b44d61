/* test_daemon.c - the coordinator as a process: its flags, its port, its signals, and frames that
 * no client of ours sends. */
#include "common/message/message.h"
#include "tests/cluster/real_cluster.h"
#include "tests/cluster/stranger.h"
#include "tests/support/suite.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 64
#define EXIT_IO 74
#define EXIT_CONFIGURATION 78

static void assert_serves(struct cluster *cluster)
{
    Gimbal__ListNodesRequest list = GIMBAL__LIST_NODES_REQUEST__INIT;
    party_tell(cluster_user(cluster), COORDINATOR_LIST_NODES, &list);
}

START_TEST(garbage_is_answered_and_the_next_call_served)
{
    struct cluster cluster;
    Gimbal__Envelope *answer;
    cluster_start(&cluster, NULL);
    ck_assert_int_eq(stranger_ask(cluster.address, 0, stranger_frame("\xffgarbage", 8), &answer),
                     0);
    ck_assert_uint_eq(answer->status, RPC_INVALID_ARGUMENT);
    message_free(&answer->base);
    assert_serves(&cluster);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_frame_above_every_limit_costs_its_connection_only)
{
    struct cluster cluster;
    cluster_start(&cluster, NULL);
    ck_assert_int_eq(stranger_ask(cluster.address, 0, stranger_frame("", (size_t)64 << 20), NULL),
                     NNG_ECONNRESET);
    assert_serves(&cluster);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(another_major_version_is_refused_naming_both)
{
    struct cluster cluster;
    Gimbal__Envelope *answer;
    cluster_start(&cluster, NULL);
    ck_assert_int_eq(stranger_ask(cluster.address, 0, stranger_hello_of_next_major(), &answer), 0);
    ck_assert_uint_eq(answer->status, RPC_FAILED_PRECONDITION);
    ck_assert_msg(strstr(answer->status_text, "protocol 2.0 meets protocol 1.0") != NULL, "%s",
                  answer->status_text);
    message_free(&answer->base);
    assert_serves(&cluster);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_port_in_use_is_said_and_the_other_goes_on)
{
    struct cluster cluster;
    char words[2048];
    cluster_start(&cluster, NULL);
    int code = coordinator_run((const char *const[]){"--address", cluster.address, NULL}, words,
                               sizeof words);
    ck_assert_int_eq(code, EXIT_IO);
    ck_assert_msg(strstr(words, "the port is in use") != NULL, "%s", words);
    assert_serves(&cluster);
    cluster_stop(&cluster);
}
END_TEST

static const struct {
    const char *arguments[4];
    int code;
    const char *words;
} refusals[] = {
    {{"--address", "tcp://192.0.2.1:7070"},
     EXIT_CONFIGURATION,
     "calls from other machines need TLS"},
    {{"--address", "udp://127.0.0.1:7070"}, EXIT_CONFIGURATION, "is no address"},
    {{"--dead-after", "2s"}, EXIT_CONFIGURATION, "more than 3 heartbeats of 1000 ms"},
    {{"--heartbeat", "soon"}, EXIT_USAGE, "--heartbeat: 'soon'"},
    {{"--heartbeat"}, EXIT_USAGE, "--heartbeat needs a value"},
    {{"--adress=x"}, EXIT_USAGE, "unknown flag --adress; did you mean --address?"},
    {{"serve"}, EXIT_USAGE, "'serve' is not a flag"},
    {{"--check", "--address", "tcp://192.0.2.1:7070"}, EXIT_CONFIGURATION, "need TLS"},
    {{"--check", "--dead-after", "2s"}, EXIT_CONFIGURATION, "more than 3 heartbeats of 1000 ms"},
    {{"--config", "/proc/nonexistent/coordinator.yaml"},
     EXIT_IO,
     "/proc/nonexistent/coordinator.yaml"},
    {{"--address", "tcp://127.0.0.1:0", "--address-file=/proc/nonexistent/address"},
     EXIT_IO,
     "address: write '/proc/nonexistent/address'"},
};

START_TEST(a_wrong_setting_ends_it_in_one_sentence)
{
    char words[2048];
    int code = coordinator_run(refusals[_i].arguments, words, sizeof words);
    ck_assert_msg(code == refusals[_i].code, "%d: %s", code, words);
    ck_assert_msg(strstr(words, refusals[_i].words) != NULL, "%s", words);
    ck_assert_ptr_eq(strchr(words, '\n'), words + strlen(words) - 1);
}
END_TEST

START_TEST(right_settings_are_checked_without_a_word)
{
    char words[2048];
    struct cluster cluster; /* its port is in use, which is no setting's fault */
    cluster_start(&cluster, NULL);
    int code = coordinator_run((const char *const[]){"--address", cluster.address, "--check", NULL},
                               words, sizeof words);
    ck_assert_str_eq(words, "");
    ck_assert_int_eq(code, 0);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_flag_goes_over_the_environment)
{
    char words[2048];
    setenv("GIMBAL_ADDRESS", "tcp://192.0.2.1:1", 1);
    ck_assert_int_eq(coordinator_run((const char *const[]){NULL}, words, sizeof words),
                     EXIT_CONFIGURATION);
    ck_assert_ptr_nonnull(strstr(words, "192.0.2.1:1"));
    struct cluster cluster; /* its address is given by a flag */
    cluster_start(&cluster, NULL);
    assert_serves(&cluster);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_silent_worker_is_lost)
{
    struct cluster cluster;
    cluster_start(&cluster,
                  (const char *const[]){"--heartbeat", "10ms", "--dead-after", "50ms", NULL});
    struct party *user = cluster_user(&cluster);
    struct party *worker = cluster_worker(&cluster, "node-a", 1, 1 << 30);
    cluster_event(&cluster, user, "node-suspected");
    const Gimbal__Event *event = cluster_event(&cluster, user, "node-lost");
    ck_assert_ptr_nonnull(strstr(event->text, "node node-a lost: silent for"));
    /* Should it wake again, it is told that it was given up. */
    Gimbal__HeartbeatRequest heartbeat = GIMBAL__HEARTBEAT_REQUEST__INIT;
    enum rpc_status status;
    struct error words;
    heartbeat.node = (char *)"node-a";
    ck_assert_ptr_null(party_ask(worker, COORDINATOR_HEARTBEAT, &heartbeat, &status, &words));
    ck_assert_int_eq(status, RPC_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(words.text, "given up as lost"));
    cluster_stop(&cluster);
}
END_TEST

/* By a signal, or with its whole machine: that nothing was heard meanwhile says nothing of those
 * who could not be heard. */
START_TEST(a_coordinator_that_was_stopped_takes_nobody_for_lost)
{
    struct cluster cluster;
    cluster_start(&cluster,
                  (const char *const[]){"--heartbeat", "500ms", "--dead-after", "3s", NULL});
    struct party *worker = cluster_worker(&cluster, "node-a", 1, 1 << 30);
    Gimbal__HeartbeatRequest heartbeat = GIMBAL__HEARTBEAT_REQUEST__INIT;
    heartbeat.node = (char *)"node-a";
    party_tell(worker, COORDINATOR_HEARTBEAT, &heartbeat);
    poll(NULL, 0, 100); /* it waits, and is at nothing that it would see itself take long */
    ck_assert_int_eq(kill(cluster.coordinator, SIGSTOP), 0);
    poll(NULL, 0, 4000);
    ck_assert_int_eq(kill(cluster.coordinator, SIGCONT), 0);
    poll(NULL, 0, 300); /* it has looked at its clock before it hears anything */
    party_tell(worker, COORDINATOR_HEARTBEAT, &heartbeat);
    cluster_stop(&cluster);
}
END_TEST

SUITE(daemon)
{
    TCase *frames = tcase_create("frames"), *process = tcase_create("process");
    tcase_add_test(frames, garbage_is_answered_and_the_next_call_served);
    tcase_add_test(frames, a_frame_above_every_limit_costs_its_connection_only);
    tcase_add_test(frames, another_major_version_is_refused_naming_both);
    tcase_add_test(process, a_port_in_use_is_said_and_the_other_goes_on);
    tcase_add_loop_test(process, a_wrong_setting_ends_it_in_one_sentence, 0,
                        (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(process, right_settings_are_checked_without_a_word);
    tcase_add_test(process, a_flag_goes_over_the_environment);
    tcase_add_test(process, a_silent_worker_is_lost);
    tcase_set_timeout(process, 30);
    tcase_add_test(process, a_coordinator_that_was_stopped_takes_nobody_for_lost);
    return suite_run("daemon", frames, process, NULL);
}
