/* watch.c - polls, delivers the records, and polls again after the last one delivered. */
#include "common/rpc/watch.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/backoff.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The server answers within 20 s; one that is silent is given up after this. */
#define POLL_DEADLINE_MS 30000

struct rpc_watch {
    struct rpc_client *client;
    unsigned method;
    char *stream;
    uint64_t term, revision; /* what has been handed over */
    rpc_watch_cb callback;
    void *data;
    struct rpc_pending *pending;
    unsigned failures; /* since the last answer */
    bool in_callback;
    bool stopped; /* by its own callback */
};

static void answered(void *data, const struct rpc_result *result);

static void ask(struct rpc_watch *watch, uint32_t delay_ms)
{
    Gimbal__StreamPoll poll = GIMBAL__STREAM_POLL__INIT;
    poll.stream = watch->stream;
    poll.term = watch->term;
    poll.revision = watch->revision;
    struct rpc_call_options options = {
        .deadline_ms = POLL_DEADLINE_MS, .delay_ms = delay_ms, .once = true};
    watch->pending =
        rpc_client_start(watch->client, watch->method, &poll.base, &options, answered, watch);
}

/* Runs the callback; false when it has stopped the watch, which is then freed. */
static bool tell(struct rpc_watch *watch, const struct rpc_watch_event *event)
{
    watch->in_callback = true;
    watch->callback(watch->data, event);
    watch->in_callback = false;
    if (!watch->stopped)
        return true;
    rpc_watch_stop(watch);
    return false;
}

/* Do the records continue what was delivered: our term, revision + 1, + 2, ...? */
static bool follows(const struct rpc_watch *watch, const Gimbal__StreamBatch *batch)
{
    for (size_t i = 0; i < batch->n_records; i++)
        if (batch->records[i]->revision != watch->revision + 1 + i)
            return false;
    return batch->n_records == 0 || batch->term == watch->term;
}

static void take(struct rpc_watch *watch, const Gimbal__StreamBatch *batch)
{
    if (!follows(watch, batch)) {
        char text[128];
        snprintf(text, sizeof text,
                 "the stream '%.40s' does not go on behind revision %" PRIu64 ": read a snapshot",
                 watch->stream, watch->revision);
        tell(watch, &(struct rpc_watch_event){.status = RPC_DATA_LOSS, .text = text});
        return;
    }
    watch->revision += batch->n_records;
    if (batch->n_records > 0 &&
        !tell(watch, &(struct rpc_watch_event){
                         .text = "", .records = batch->records, .count = batch->n_records}))
        return;
    if (!watch->pending)
        ask(watch, 0);
}

static bool will_pass(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_RESOURCE_EXHAUSTED;
}

static void answered(void *data, const struct rpc_result *result)
{
    struct rpc_watch *watch = data;
    watch->pending = NULL;
    if (result->status == RPC_OK) {
        watch->failures = 0;
        take(watch, result->reply);
    } else if (will_pass(result->status)) {
        double uniform =
            random_uniform(rpc_client_id(watch->client), watch->revision, watch->failures);
        ask(watch, backoff_ms(watch->failures++, uniform));
    } else {
        tell(watch, &(struct rpc_watch_event){.status = result->status, .text = result->text});
    }
}

struct rpc_watch *rpc_watch_start(struct rpc_client *client, unsigned method, const char *stream,
                                  uint64_t revision, rpc_watch_cb callback, void *data)
{
    assert(rpc_client_service(client)->methods[method].kind == RPC_HELD);
    struct rpc_watch *watch = xcalloc(1, sizeof *watch);
    watch->client = client;
    watch->method = method;
    watch->stream = xstrdup(stream);
    watch->callback = callback;
    watch->data = data;
    rpc_watch_resume(watch, revision);
    return watch;
}

void rpc_watch_resume(struct rpc_watch *watch, uint64_t revision)
{
    assert(!watch->pending);
    watch->term = rpc_client_term(watch->client);
    watch->revision = revision;
    watch->failures = 0;
    ask(watch, 0);
}

void rpc_watch_stop(struct rpc_watch *watch)
{
    if (!watch)
        return;
    if (watch->pending)
        rpc_pending_cancel(watch->pending);
    watch->pending = NULL;
    watch->stopped = true;
    if (watch->in_callback)
        return; /* freed when that returns */
    free(watch->stream);
    free(watch);
}
