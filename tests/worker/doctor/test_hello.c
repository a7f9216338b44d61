/* test_hello.c - coordinators that answer a node, and are not what it needs. */
#include "common/message/message.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/server.h"
#include "proto/coordinator.pb-c.h"
#include "tests/support/suite.h"
#include "tests/worker/doctor/scene.h"
#include "worker/node/state_folder.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLUSTER 7

static pid_t coordinator;
static char address[96];

/* What it answers with: set before it is started. */
static const char *release;
static int64_t ahead_ms;
static uint32_t held_port; /* 0: its own */

static uint64_t calendar(void)
{
    return (uint64_t)((int64_t)time(NULL) * 1000 + ahead_ms);
}

static void hello(struct rpc_call *call, void *data)
{
    const Gimbal__HelloReply reply = {.base =
                                          PROTOBUF_C_MESSAGE_INIT(&gimbal__hello_reply__descriptor),
                                      .release = (char *)release,
                                      .term = 1,
                                      .instance = 1,
                                      .cluster = CLUSTER,
                                      .held_port = held_port,
                                      .unix_ms = calendar()};
    (void)data;
    rpc_call_reply(call, &reply.base);
}

static void serve(int told)
{
    struct rpc_server_options options = {.service = &service_coordinator,
                                         .term = 1,
                                         .instance = 1,
                                         .cluster = CLUSTER,
                                         .release = release,
                                         .calendar_cb = calendar};
    struct rpc_server *server;
    struct error err = {""};
    if (rpc_server_create(&options, &server, &err) < 0)
        _exit(1);
    rpc_server_handle(server, COORDINATOR_HELLO, held_port ? hello : rpc_hello, NULL);
    if (rpc_server_listen(server, RPC_EVERYBODY, "tcp://127.0.0.1:0", &err) < 0)
        _exit(1);
    const char *at = rpc_server_address(server, 0);
    if (write(told, at, strlen(at)) < 0)
        _exit(1);
    for (;;)
        rpc_server_poll(server, -1);
}

/* It dies with the test. */
static void start(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    coordinator = fork();
    if (coordinator == 0)
        serve(ends[1]);
    ssize_t size = read(ends[0], address, sizeof address - 1);
    ck_assert_int_gt(size, 0);
    address[size] = '\0';
    close(ends[0]);
    close(ends[1]);
    scene_settings.coordinator = address;
}

static void set_up(void)
{
    scene_open();
    release = GIMBAL_RELEASE;
    ahead_ms = 0;
    held_port = 0;
}

static void tear_down(void)
{
    kill(coordinator, SIGKILL);
    waitpid(coordinator, NULL, 0);
    scene_close();
}

START_TEST(one_that_fits_is_told_with_its_release)
{
    start();
    scene_says(&check_coordinator, ", release " GIMBAL_RELEASE ", answers in ");
}
END_TEST

START_TEST(one_of_another_release_is_told)
{
    release = "0.0.9";
    start();
    scene_says(&check_coordinator,
               "warning: the coordinator is of release 0.0.9, and this worker of " GIMBAL_RELEASE);
}
END_TEST

START_TEST(one_with_another_time_is_told)
{
    ahead_ms = 7200 * 1000 + 500;
    start();
    scene_says(&check_coordinator,
               "warning: the coordinator's clock is 2h00m ahead of this machine's");
}
END_TEST

START_TEST(one_of_another_cluster_blocks)
{
    struct error err = {""};
    char path[96];
    start();
    snprintf(path, sizeof path, "%s/node-a.coordinator", scene_settings.state);
    scene_put("state/node-a.coordinator", "");
    ck_assert_int_eq(fence_write(path, &(struct rpc_fence){CLUSTER + 1, 1, 1}, &err), 0);
    scene_says(&check_coordinator, "blocking: tcp://127.0.0.1:");
    scene_put("state/node-a.coordinator", "who knows\n");
    scene_says(&check_coordinator, "does not say which coordinator this node belongs to");
}
END_TEST

/* A port that nobody listens at: one of those that only root may have. */
START_TEST(one_whose_held_calls_go_nowhere_blocks)
{
    held_port = 9;
    start();
    scene_says(&check_coordinator, "blocking: calls that wait for news go to port 9, which "
                                   "cannot be reached: "
                                   "nobody listens there");
}
END_TEST

SUITE(doctor_hello)
{
    TCase *tcase = tcase_create("hello");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, one_that_fits_is_told_with_its_release);
    tcase_add_test(tcase, one_of_another_release_is_told);
    tcase_add_test(tcase, one_with_another_time_is_told);
    tcase_add_test(tcase, one_of_another_cluster_blocks);
    tcase_add_test(tcase, one_whose_held_calls_go_nowhere_blocks);
    return suite_run("doctor_hello", tcase, NULL);
}
