/* unary.c - the latency of one call compared with bare NNG. The two alternate call by call, and a
 * single process answers both. */
#include "bench/rpc/raw.h"
#include "bench/rpc/rpc.h"

#include "common/message/message.h"

#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BYTES ((size_t)64 << 10)
#define WARM_UP_COUNT 1000

static char large_text[LARGE_BYTES];

static void answer_plan(struct rpc_call *call, void *data)
{
    Gimbal__PlanReply reply = GIMBAL__PLAN_REPLY__INIT;
    reply.explanation = data;
    rpc_call_reply(call, &reply.base);
}

/* Tells the raw server's address, a blank and ours. */
static int serve(int fd, const char *argument)
{
    (void)argument;
    char raw[96];
    if (raw_serve(raw, sizeof raw) != 0)
        return fail("NNG alone cannot listen");
    char line[128];
    snprintf(line, sizeof line, "%s ", raw);
    if (write(fd, line, strlen(line)) < 0)
        return fail("nobody reads the address");
    struct rpc_server *server = bench_server(fd);
    if (!server)
        return EXIT_FAILURE;
    memset(large_text, 'x', sizeof large_text - 1);
    rpc_server_handle(server, COORDINATOR_PLAN, answer_plan, large_text);
    for (;;)
        rpc_server_poll(server, -1);
}

static double time_plan(struct rpc_client *client)
{
    struct rpc_call_options options = {.deadline_ms = 10000};
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    struct error err;
    ProtobufCMessage *reply;
    request.job_yaml = large_text;
    double start_s = now_s();
    if (rpc_client_call(client, COORDINATOR_PLAN, &request.base, &options, &reply, &err) != RPC_OK)
        return -1;
    double seconds = now_s() - start_s;
    message_free(reply);
    return seconds;
}

struct kind {
    const char *name;
    double (*time_it)(struct rpc_client *client);
    size_t request_bytes, reply_bytes; /* of the payloads */
    size_t count;
};

static int measure(const struct kind *kind, struct rpc_client *client, nng_socket raw)
{
    struct samples ours = {0}, bare = {0};
    size_t request = kind->request_bytes + RAW_ENVELOPE_BYTES;
    size_t reply = kind->reply_bytes + RAW_ENVELOPE_BYTES;
    for (size_t i = 0; i < kind->count + WARM_UP_COUNT; i++) {
        double bare_s = raw_call(raw, request, reply), ours_s = kind->time_it(client);
        if (bare_s < 0 || ours_s < 0)
            return fail("a call failed");
        if (i < WARM_UP_COUNT)
            continue;
        samples_add(&bare, bare_s);
        samples_add(&ours, ours_s);
    }
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}};
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        double ours_s = samples_quantile(&ours, quantiles[i].share);
        double bare_s = samples_quantile(&bare, quantiles[i].share);
        snprintf(name, sizeof name, "unary%s_%s_s", kind->name, quantiles[i].name);
        print_figure(name, ours_s, "s", "of %zu calls", kind->count);
        snprintf(name, sizeof name, "nng%s_%s_s", kind->name, quantiles[i].name);
        print_figure(name, bare_s, "s", "NNG alone, in turns with them");
        snprintf(name, sizeof name, "unary%s_%s_vs_nng", kind->name, quantiles[i].name);
        print_figure(name, ours_s / bare_s, "ratio", "the bar is 1.5");
    }
    samples_finish(&ours);
    samples_finish(&bare);
    return EXIT_SUCCESS;
}

int figure_unary(unsigned seconds)
{
    static const struct kind kinds[] = {
        {"", time_heartbeat, 20, 4, 20000},
        {"_64k", time_plan, LARGE_BYTES, LARGE_BYTES, 4000},
    };
    (void)seconds;
    char told[256], *address;
    nng_socket raw;
    part_start(serve, NULL, told, sizeof told);
    memset(large_text, 'x', sizeof large_text - 1);
    address = strchr(told, ' ');
    if (!address || !address[1])
        return fail("the server told no address");
    *address++ = '\0';
    if (nng_req0_open(&raw) != 0 || nng_dial(raw, told, NULL, 0) != 0)
        return fail("NNG alone cannot connect");
    struct rpc_client *client = bench_client(address);
    if (!client)
        return EXIT_FAILURE;
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < 2 && status == EXIT_SUCCESS; i++)
        status = measure(&kinds[i], client, raw);
    rpc_client_close(client);
    nng_close(raw);
    return status;
}
