/* bench_rpc.c - how long a unary call takes over loopback, server and client in two processes. */
#include "common/rpc/client.h"
#include "common/rpc/clock.h"
#include "common/rpc/message.h"
#include "common/rpc/server.h"
#include "common/rpc/services/coordinator.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL_COUNT 20000
#define WARM_UP_COUNT 2000
#define RUN_COUNT 5

static void heartbeat(struct rpc_call *call, void *data)
{
    Gimbal__HeartbeatReply reply = GIMBAL__HEARTBEAT_REPLY__INIT;
    (void)data;
    reply.revision = 1;
    rpc_call_reply(call, &reply.base);
}

static int fail(const char *text)
{
    fprintf(stderr, "bench rpc: %s\n", text);
    return EXIT_FAILURE;
}

/* Serve until killed; the address goes into the pipe. */
static int serve(int pipe_fd)
{
    struct error err = {""};
    struct rpc_server *server;
    struct rpc_server_options options = {
        .service = &service_coordinator, .term = 1, .instance = 1, .release = "bench"};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rpc_server_create(&options, &server, &err) < 0)
        return fail(err.text);
    rpc_server_handle(server, COORDINATOR_HELLO, rpc_hello, NULL);
    rpc_server_handle(server, COORDINATOR_HEARTBEAT, heartbeat, NULL);
    if (rpc_server_listen(server, RPC_EVERYBODY, "tcp://127.0.0.1:0", &err) < 0)
        return fail(err.text);
    const char *address = rpc_server_address(server, 0);
    if (write(pipe_fd, address, strlen(address)) < 0)
        return fail("nobody reads the address");
    for (;;)
        rpc_server_poll(server, -1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Call count times; seconds, sorted. */
static int measure(struct rpc_client *client, size_t count, double *seconds, struct error *err)
{
    Gimbal__RankState rank = GIMBAL__RANK_STATE__INIT, *ranks[] = {&rank};
    Gimbal__HeartbeatRequest request = GIMBAL__HEARTBEAT_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = 10000};
    request.node = (char *)"node-a";
    rank.job = (char *)"j-1";
    request.ranks = ranks;
    request.n_ranks = 1;
    for (size_t i = 0; i < count; i++) {
        ProtobufCMessage *reply;
        double start_s = now_s();
        if (rpc_client_call(client, COORDINATOR_HEARTBEAT, &request.base, &options, &reply, err) !=
            RPC_OK)
            return -1;
        seconds[i] = now_s() - start_s;
        message_free(reply);
    }
    qsort(seconds, count, sizeof *seconds, by_value);
    return 0;
}

static int run(const char *address)
{
    static double seconds[CALL_COUNT];
    double p50_s[RUN_COUNT], p99_s[RUN_COUNT];
    struct error err = {""};
    struct rpc_client *client;
    struct rpc_client_options options = {
        .service = &service_coordinator, .address = address, .caller = "bench", .fail_fast = true};
    struct rpc_call_options patient = {.deadline_ms = 10000};
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    ProtobufCMessage *reply;
    if (rpc_client_open(&options, &client, &err) < 0)
        return fail(err.text);
    if (rpc_client_call(client, COORDINATOR_HELLO, &hello.base, &patient, &reply, &err) != RPC_OK)
        return fail(err.text);
    message_free(reply);
    if (measure(client, WARM_UP_COUNT, seconds, &err) < 0)
        return fail(err.text);
    for (size_t i = 0; i < RUN_COUNT; i++) {
        if (measure(client, CALL_COUNT, seconds, &err) < 0)
            return fail(err.text);
        p50_s[i] = seconds[CALL_COUNT / 2];
        p99_s[i] = seconds[(size_t)CALL_COUNT / 100 * 99];
    }
    rpc_client_close(client);
    qsort(p50_s, RUN_COUNT, sizeof *p50_s, by_value);
    qsort(p99_s, RUN_COUNT, sizeof *p99_s, by_value);
    printf("bench rpc/unary_p50_s %.9f s # median of %d runs of %d calls, %.9f to %.9f\n",
           p50_s[RUN_COUNT / 2], RUN_COUNT, CALL_COUNT, p50_s[0], p50_s[RUN_COUNT - 1]);
    printf("bench rpc/unary_p99_s %.9f s # median of %d runs of %d calls, %.9f to %.9f\n",
           p99_s[RUN_COUNT / 2], RUN_COUNT, CALL_COUNT, p99_s[0], p99_s[RUN_COUNT - 1]);
    printf("bench rpc done\n");
    return EXIT_SUCCESS;
}

int main(void)
{
    int fds[2];
    char address[128] = "";
    if (pipe(fds) < 0)
        return fail("no pipe");
    pid_t child = fork(); /* before NNG is in use: it cannot be forked later */
    if (child < 0)
        return fail("no second process");
    if (child == 0) {
        close(fds[0]);
        return serve(fds[1]);
    }
    close(fds[1]);
    if (read(fds[0], address, sizeof address - 1) <= 0)
        return fail("the server did not start");
    int status = run(address);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return status;
}
