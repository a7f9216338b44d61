/* stream.c - the time that a record takes from being appended in the server to the watcher's
 * callback. */
#include "bench/rpc/rpc.h"

#include "common/base/clock.h"
#include "common/rpc/records.h"
#include "common/rpc/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_COUNT 5000
#define WARM_UP_COUNT 200

struct source {
    struct rpc_server *server;
    struct stream *stream;
};

/* The record is the time of its append: both processes read one clock. */
static void append(struct rpc_call *call, void *data)
{
    struct source *source = data;
    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    rpc_call_reply(call, &reply.base);
    uint64_t now_ns = clock_ns();
    stream_append(source->stream, &now_ns, sizeof now_ns);
    rpc_server_wake(source->server, "events");
}

static void poll_stream(struct rpc_call *call, void *data)
{
    rpc_call_reply_stream(call, ((struct source *)data)->stream, "events");
}

static int serve(int fd, const char *argument)
{
    (void)argument;
    struct source source = {bench_server(fd), stream_create(1, 1000)};
    if (!source.server)
        return EXIT_FAILURE;
    rpc_server_handle(source.server, COORDINATOR_CANCEL, append, &source);
    rpc_server_handle(source.server, COORDINATOR_WATCH_EVENTS, poll_stream, &source);
    for (;;)
        rpc_server_poll(source.server, -1);
}

struct watcher {
    struct samples seconds;
    size_t seen, answered;
    bool failed;
};

static void watched(void *data, const struct rpc_watch_event *event)
{
    struct watcher *watcher = data;
    uint64_t now_ns = clock_ns(), then_ns;
    watcher->failed |= event->status != RPC_OK;
    for (size_t i = 0; i < event->count; i++) {
        memcpy(&then_ns, event->records[i]->data.data, sizeof then_ns);
        if (watcher->seen++ >= WARM_UP_COUNT)
            samples_add(&watcher->seconds, 1e-9 * (double)(now_ns - then_ns));
    }
}

static void appended(void *data, const struct rpc_result *result)
{
    struct watcher *watcher = data;
    watcher->answered++;
    watcher->failed |= result->status != RPC_OK;
}

int figure_stream(unsigned seconds)
{
    (void)seconds;
    char address[128];
    part_start(serve, NULL, address, sizeof address);
    struct rpc_client *client = bench_client(address);
    if (!client)
        return EXIT_FAILURE;
    struct watcher watcher = {.seen = 0};
    struct rpc_watch *watch =
        rpc_watch_start(client, COORDINATOR_WATCH_EVENTS, "events", 0, watched, &watcher);
    struct rpc_call_options options = {.deadline_ms = 10000};
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    for (size_t i = 1; i <= RECORD_COUNT + WARM_UP_COUNT && !watcher.failed; i++) {
        rpc_client_start(client, COORDINATOR_CANCEL, &request.base, &options, appended, &watcher);
        while ((watcher.seen < i || watcher.answered < i) && !watcher.failed)
            rpc_client_poll(client, -1);
    }
    if (watcher.failed)
        return fail("a call or the watch failed");
    print_figure("stream_p50_s", samples_quantile(&watcher.seconds, 0.5), "s",
                 "append to callback, %d records, one at a time", RECORD_COUNT);
    print_figure("stream_p99_s", samples_quantile(&watcher.seconds, 0.99), "s",
                 "of the same records");
    samples_finish(&watcher.seconds);
    rpc_watch_stop(watch);
    rpc_client_close(client);
    return EXIT_SUCCESS;
}
