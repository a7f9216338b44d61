/* parts.c - what the figures share: samples, output lines, processes, a server and a client. */
#include "bench/rpc/rpc.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/message/message.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

double now_s(void)
{
    return 1e-9 * (double)clock_ns();
}

void samples_add(struct samples *samples, double value)
{
    samples->values =
        grow(samples->values, samples->count, &samples->capacity, sizeof *samples->values);
    samples->values[samples->count++] = value;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double samples_quantile(struct samples *samples, double share)
{
    if (samples->count == 0)
        return NAN;
    qsort(samples->values, samples->count, sizeof *samples->values, by_value);
    size_t index = (size_t)ceil(share * (double)samples->count);
    return samples->values[index > 0 ? index - 1 : 0];
}

void samples_finish(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

void print_figure(const char *name, double value, const char *unit, const char *format, ...)
{
    va_list arguments;
    printf("bench rpc/%s %.4g %s", name, value, unit);
    if (*format)
        printf("  # ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

int fail(const char *text)
{
    fprintf(stderr, "bench rpc: %s\n", text);
    return EXIT_FAILURE;
}

void part_start(int (*body)(int fd, const char *argument), const char *argument, char *told,
                size_t size)
{
    int fds[2];
    if (pipe(fds) < 0)
        exit(fail("no pipe"));
    pid_t child = fork();
    if (child < 0)
        exit(fail("no further process"));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        exit(body(fds[1], argument));
    }
    close(fds[1]);
    size_t count = 0;
    ssize_t got;
    while (count < size - 1 && (got = read(fds[0], told + count, size - 1 - count)) > 0)
        count += (size_t)got;
    close(fds[0]);
    if (count == 0)
        exit(fail("a process of the figure did not start"));
    told[count] = '\0';
}

struct rpc_server *bench_server(int fd)
{
    struct error err;
    struct rpc_server *server;
    struct rpc_server_options options = {.service = &service_coordinator,
                                         .term = 1,
                                         .instance = 1,
                                         .release = "bench",
                                         .hold_ms = 3600000};
    if (rpc_server_create(&options, &server, &err) < 0) {
        fail(err.text);
        return NULL;
    }
    rpc_server_handle(server, COORDINATOR_HELLO, rpc_hello, NULL);
    rpc_server_handle(server, COORDINATOR_HEARTBEAT, answer_heartbeat, server);
    if (rpc_server_listen(server, RPC_EVERYBODY, "tcp://127.0.0.1:0", &err) < 0) {
        fail(err.text);
        rpc_server_destroy(server);
        return NULL;
    }
    const char *address = rpc_server_address(server, 0);
    if (write(fd, address, strlen(address)) < 0)
        fail("nobody reads the address");
    close(fd);
    return server;
}

struct rpc_client *bench_client(const char *address)
{
    struct error err;
    struct rpc_client *client;
    ProtobufCMessage *reply;
    struct rpc_client_options options = {
        .service = &service_coordinator, .address = address, .caller = "bench", .fail_fast = true};
    struct rpc_call_options patient = {.deadline_ms = 30000};
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    if (rpc_client_open(&options, &client, &err) < 0) {
        fail(err.text);
        return NULL;
    }
    if (rpc_client_call(client, COORDINATOR_HELLO, &hello.base, &patient, &reply, &err) != RPC_OK) {
        fail(err.text);
        rpc_client_close(client);
        return NULL;
    }
    message_free(reply);
    return client;
}

void answer_heartbeat(struct rpc_call *call, void *server)
{
    Gimbal__HeartbeatReply reply = GIMBAL__HEARTBEAT_REPLY__INIT;
    reply.revision = rpc_server_held_count(server);
    rpc_call_reply(call, &reply.base);
}

double time_heartbeat(struct rpc_client *client)
{
    struct rpc_call_options options = {.deadline_ms = 10000};
    Gimbal__RankState rank = GIMBAL__RANK_STATE__INIT, *ranks[] = {&rank};
    Gimbal__HeartbeatRequest request = GIMBAL__HEARTBEAT_REQUEST__INIT;
    struct error err;
    ProtobufCMessage *reply;
    request.node = (char *)"node-a";
    rank.job = (char *)"j-1";
    request.ranks = ranks;
    request.n_ranks = 1;
    double start_s = now_s();
    if (rpc_client_call(client, COORDINATOR_HEARTBEAT, &request.base, &options, &reply, &err) !=
        RPC_OK) {
        fail(err.text);
        return -1;
    }
    double seconds = now_s() - start_s;
    message_free(reply);
    return seconds;
}
