/* flight.c - the calls per second of one client that always has 32 in flight, compared with bare
 * NNG. The two alternate second by second, and a single process answers both. */
#include "bench/rpc/raw.h"
#include "bench/rpc/rpc.h"

#include "common/base/memory.h"

#include <nng/protocol/reqrep0/req.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLIGHT_COUNT 32
#define ROUND_COUNT 5
#define ROUND_S 1.0
#define REQUEST_BYTES (20 + RAW_ENVELOPE_BYTES)
#define REPLY_BYTES (4 + RAW_ENVELOPE_BYTES)

static int serve(int fd, const char *argument)
{
    (void)argument;
    char raw[96];
    if (raw_serve(raw, sizeof raw) != 0 || write(fd, raw, strlen(raw)) < 0 || write(fd, " ", 1) < 0)
        return fail("NNG alone cannot listen");
    struct rpc_server *server = bench_server(fd);
    if (!server)
        return EXIT_FAILURE;
    for (;;)
        rpc_server_poll(server, -1);
}

/* NNG alone: each context sends again when it has its answer, until time is up. */
struct asker {
    nng_ctx ctx;
    nng_aio *aio;
    bool receiving;
};
static atomic_ulong raw_answered;
static atomic_bool raw_over;

static void ask(struct asker *asker)
{
    asker->receiving = false;
    nng_aio_set_msg(asker->aio, raw_request(REQUEST_BYTES, REPLY_BYTES));
    nng_ctx_send(asker->ctx, asker->aio);
}

static void asked(void *data)
{
    struct asker *asker = data;
    if (nng_aio_result(asker->aio) != 0)
        return;
    if (!asker->receiving) {
        asker->receiving = true;
        nng_ctx_recv(asker->ctx, asker->aio);
        return;
    }
    nng_msg_free(nng_aio_get_msg(asker->aio));
    atomic_fetch_add(&raw_answered, 1);
    if (!atomic_load(&raw_over))
        ask(asker);
}

static double raw_rate(struct asker *askers)
{
    const struct timespec round = {.tv_sec = (time_t)ROUND_S};
    atomic_store(&raw_answered, 0);
    atomic_store(&raw_over, false);
    double start_s = now_s();
    for (size_t i = 0; i < FLIGHT_COUNT; i++)
        ask(&askers[i]);
    nanosleep(&round, NULL); /* the round's length: NNG's threads work meanwhile */
    double rate = (double)atomic_load(&raw_answered) / (now_s() - start_s);
    atomic_store(&raw_over, true);
    for (size_t i = 0; i < FLIGHT_COUNT; i++)
        nng_aio_wait(askers[i].aio);
    return rate;
}

/* Ours, the same way. */
struct caller {
    struct rpc_client *client;
    size_t answered, under_way;
    bool over, failed;
};

static void answered(void *data, const struct rpc_result *result);

static void call(struct caller *caller)
{
    struct rpc_call_options options = {.deadline_ms = 10000};
    Gimbal__RankState rank = GIMBAL__RANK_STATE__INIT, *ranks[] = {&rank};
    Gimbal__HeartbeatRequest request = GIMBAL__HEARTBEAT_REQUEST__INIT;
    request.node = (char *)"node-a";
    rank.job = (char *)"j-1";
    request.ranks = ranks;
    request.n_ranks = 1;
    caller->under_way++;
    rpc_client_start(caller->client, COORDINATOR_HEARTBEAT, &request.base, &options, answered,
                     caller);
}

static void answered(void *data, const struct rpc_result *result)
{
    struct caller *caller = data;
    caller->under_way--;
    caller->answered++;
    caller->failed |= result->status != RPC_OK;
    if (!caller->over)
        call(caller);
}

static double our_rate(struct caller *caller)
{
    double start_s = now_s();
    caller->answered = 0;
    caller->over = false;
    for (size_t i = 0; i < FLIGHT_COUNT; i++)
        call(caller);
    while (now_s() < start_s + ROUND_S)
        rpc_client_poll(caller->client, 10);
    double rate = (double)caller->answered / (now_s() - start_s);
    caller->over = true;
    while (caller->under_way > 0)
        rpc_client_poll(caller->client, 10);
    return rate;
}

static int open_askers(const char *address, nng_socket *socket, struct asker *askers)
{
    int rc = nng_req0_open(socket);
    if (rc == 0)
        rc = nng_dial(*socket, address, NULL, 0);
    for (size_t i = 0; rc == 0 && i < FLIGHT_COUNT; i++) {
        rc = nng_ctx_open(&askers[i].ctx, *socket);
        if (rc == 0)
            rc = nng_aio_alloc(&askers[i].aio, asked, &askers[i]);
    }
    return rc;
}

int figure_flight(unsigned seconds)
{
    (void)seconds;
    char told[256], *address;
    static struct asker askers[FLIGHT_COUNT];
    struct samples ours = {0}, bare = {0};
    nng_socket raw;
    part_start(serve, NULL, told, sizeof told);
    address = strchr(told, ' ');
    if (!address || !address[1])
        return fail("the server told no address");
    *address++ = '\0';
    if (open_askers(told, &raw, askers) != 0)
        return fail("NNG alone cannot connect");
    struct caller caller = {.client = bench_client(address)};
    if (!caller.client)
        return EXIT_FAILURE;
    for (size_t i = 0; i < ROUND_COUNT; i++) {
        samples_add(&bare, raw_rate(askers));
        samples_add(&ours, our_rate(&caller));
    }
    if (caller.failed)
        return fail("a call failed");
    double our_median = samples_quantile(&ours, 0.5), bare_median = samples_quantile(&bare, 0.5);
    print_figure("calls_per_s", our_median, "calls/s", "%d under way, median of %d seconds",
                 FLIGHT_COUNT, ROUND_COUNT);
    print_figure("nng_calls_per_s", bare_median, "calls/s", "NNG alone, in turns with them");
    print_figure("calls_vs_nng", our_median / bare_median, "ratio", "of the medians");
    samples_finish(&ours);
    samples_finish(&bare);
    rpc_client_close(caller.client);
    nng_close(raw);
    return EXIT_SUCCESS;
}
