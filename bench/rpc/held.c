/* held.c - do a thousand parked calls of a thousand clients delay a unary call? Calls alternate
 * between a server that holds them and one that holds none. */
#include "bench/rpc/rpc.h"

#include "common/base/process.h"
#include "common/message/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLIENT_COUNT 1000
#define CALL_COUNT 10000
#define WARM_UP_COUNT 1000
#define HOLD_MS 3000000

static void park(struct rpc_call *call, void *data)
{
    (void)data;
    rpc_call_park(call, "never", 0);
}

static int serve(int fd, const char *argument)
{
    (void)argument;
    process_allow_descriptors();
    struct rpc_server *server = bench_server(fd);
    if (!server)
        return EXIT_FAILURE;
    rpc_server_handle(server, COORDINATOR_WATCH_EVENTS, park, NULL);
    for (;;)
        rpc_server_poll(server, -1);
}

static void ended(void *data, const struct rpc_result *result)
{
    (void)data;
    fail(result->text);
}

/* Hold a call of every client; says so once all are sent, and stays. */
static int hold(int fd, const char *address)
{
    static struct rpc_client *clients[CLIENT_COUNT];
    struct rpc_call_options options = {.deadline_ms = HOLD_MS};
    Gimbal__StreamPoll poll = GIMBAL__STREAM_POLL__INIT;
    process_allow_descriptors();
    for (size_t i = 0; i < CLIENT_COUNT; i++) {
        clients[i] = bench_client(address);
        if (!clients[i])
            return EXIT_FAILURE;
        rpc_client_start(clients[i], COORDINATOR_WATCH_EVENTS, &poll.base, &options, ended, NULL);
    }
    if (write(fd, "held", 4) < 0)
        return EXIT_FAILURE;
    close(fd);
    for (;;)
        pause();
}

/* Until the server holds them all; false when a call fails. */
static bool wait_for_held(struct rpc_client *client)
{
    struct rpc_call_options options = {.deadline_ms = 10000};
    Gimbal__HeartbeatRequest request = GIMBAL__HEARTBEAT_REQUEST__INIT;
    struct error err;
    uint64_t held = 0;
    while (held < CLIENT_COUNT) {
        ProtobufCMessage *reply;
        if (rpc_client_call(client, COORDINATOR_HEARTBEAT, &request.base, &options, &reply, &err) !=
            RPC_OK)
            return false;
        held = ((const Gimbal__HeartbeatReply *)reply)->revision;
        message_free(reply);
    }
    return true;
}

int figure_held(unsigned seconds)
{
    (void)seconds;
    char full[128], empty[128], told[8];
    struct samples with = {0}, without = {0};
    part_start(serve, NULL, full, sizeof full);
    part_start(serve, NULL, empty, sizeof empty);
    part_start(hold, full, told, sizeof told);
    struct rpc_client *of_full = bench_client(full), *of_empty = bench_client(empty);
    if (!of_full || !of_empty || !wait_for_held(of_full))
        return fail("the calls are not held");
    for (size_t i = 0; i < CALL_COUNT + WARM_UP_COUNT; i++) {
        double with_s = time_heartbeat(of_full), without_s = time_heartbeat(of_empty);
        if (with_s < 0 || without_s < 0)
            return EXIT_FAILURE;
        if (i < WARM_UP_COUNT)
            continue;
        samples_add(&with, with_s);
        samples_add(&without, without_s);
    }
    if (!wait_for_held(of_full))
        return fail("the calls are not held any more");
    print_figure("unary_beside_1000_held_p50_s", samples_quantile(&with, 0.5), "s", "of %d calls",
                 CALL_COUNT);
    print_figure("unary_beside_1000_held_p99_s", samples_quantile(&with, 0.99), "s",
                 "of the same calls");
    print_figure("unary_beside_0_held_p50_s", samples_quantile(&without, 0.5), "s",
                 "another server, in turns with them");
    print_figure("unary_beside_0_held_p99_s", samples_quantile(&without, 0.99), "s",
                 "of the same calls");
    print_figure("held_p50_vs_none", samples_quantile(&with, 0.5) / samples_quantile(&without, 0.5),
                 "ratio", "with 1000 held, to without");
    print_figure("held_p99_vs_none",
                 samples_quantile(&with, 0.99) / samples_quantile(&without, 0.99), "ratio",
                 "with 1000 held, to without");
    samples_finish(&with);
    samples_finish(&without);
    rpc_client_close(of_full);
    rpc_client_close(of_empty);
    return EXIT_SUCCESS;
}
