/* streams.c - a watch polls, delivers the records, and polls again after the last one delivered; a
 * push sends its outbox batch by batch. Both retry what is worth retrying: a watch rests where it
 * would need something of its owner, a push keeps its records for that. */
#include "common/rpc/streams.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/client.h"
#include "common/rpc/records.h"
#include "proto/envelope.pb-c.h"

#include <assert.h>
#include <errno.h>
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

static void watch_answered(void *data, const struct rpc_result *result);

static void watch_ask(struct rpc_watch *watch, uint32_t delay_ms)
{
    Gimbal__StreamPoll poll = GIMBAL__STREAM_POLL__INIT;
    poll.stream = watch->stream;
    poll.term = watch->term;
    poll.revision = watch->revision;
    struct rpc_call_options options = {
        .deadline_ms = POLL_DEADLINE_MS, .delay_ms = delay_ms, .once = true};
    watch->pending =
        rpc_client_start(watch->client, watch->method, &poll.base, &options, watch_answered, watch);
}

/* Runs the callback; false when it has stopped the watch, which is then freed. */
static bool watch_tell(struct rpc_watch *watch, const struct rpc_watch_event *event)
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
static bool watch_follows(const struct rpc_watch *watch, const Gimbal__StreamBatch *batch)
{
    for (size_t i = 0; i < batch->n_records; i++)
        if (batch->records[i]->revision != watch->revision + 1 + i)
            return false;
    return batch->n_records == 0 || batch->term == watch->term;
}

static void watch_take(struct rpc_watch *watch, const Gimbal__StreamBatch *batch)
{
    if (!watch_follows(watch, batch)) {
        char text[128];
        snprintf(text, sizeof text,
                 "the stream '%.40s' does not go on behind revision %" PRIu64 ": read a snapshot",
                 watch->stream, watch->revision);
        watch_tell(watch, &(struct rpc_watch_event){.status = RPC_DATA_LOSS, .text = text});
        return;
    }
    watch->revision += batch->n_records;
    if (batch->n_records > 0 &&
        !watch_tell(watch, &(struct rpc_watch_event){
                               .text = "", .records = batch->records, .count = batch->n_records}))
        return;
    if (!watch->pending)
        watch_ask(watch, 0);
}

static bool watch_retries(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_RESOURCE_EXHAUSTED;
}

static void watch_answered(void *data, const struct rpc_result *result)
{
    struct rpc_watch *watch = data;
    watch->pending = NULL;
    if (result->status == RPC_OK) {
        watch->failures = 0;
        watch_take(watch, result->reply);
    } else if (watch_retries(result->status)) {
        double uniform =
            random_uniform(rpc_client_id(watch->client), watch->revision, watch->failures);
        watch_ask(watch, rpc_backoff_ms(watch->failures++, uniform));
    } else {
        watch_tell(watch,
                   &(struct rpc_watch_event){.status = result->status, .text = result->text});
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
    watch_ask(watch, 0);
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

#define PUSH_DEADLINE_MS 10000
#define BATCH_COUNT_MAX 1024

struct rpc_push {
    struct rpc_client *client; /* NULL: it is held */
    unsigned method;
    char *stream;
    struct outbox *outbox;
    size_t batch_bytes_max; /* of records; a third of what the method takes is left for framing */
    struct rpc_pending *pending;
    uint64_t last_sent; /* sequence of the last record under way */
    unsigned failures;  /* since the last acknowledgement */
    uint64_t refused;
};

static void push_answered(void *data, const struct rpc_result *result);

static void push_send(struct rpc_push *push, uint32_t delay_ms)
{
    ProtobufCBinaryData records[BATCH_COUNT_MAX];
    Gimbal__PushBatch batch = GIMBAL__PUSH_BATCH__INIT;
    batch.stream = push->stream;
    batch.records = records;
    batch.n_records = outbox_batch(push->outbox, push->batch_bytes_max, BATCH_COUNT_MAX, records,
                                   &batch.first_sequence);
    if (batch.n_records == 0)
        return;
    push->last_sent = batch.first_sequence + batch.n_records - 1;
    struct rpc_call_options options = {
        .deadline_ms = PUSH_DEADLINE_MS, .delay_ms = delay_ms, .once = true};
    push->pending =
        rpc_client_start(push->client, push->method, &batch.base, &options, push_answered, push);
}

/* Is the failure temporary, and not due to the records? Then they are kept and sent again. */
static bool push_keeps(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_RESOURCE_EXHAUSTED || status == RPC_FAILED_PRECONDITION ||
           status == RPC_UNAUTHENTICATED || status == RPC_ABORTED;
}

static void push_answered(void *data, const struct rpc_result *result)
{
    struct rpc_push *push = data;
    const Gimbal__PushAck *ack = result->reply;
    size_t waiting = outbox_count(push->outbox);
    push->pending = NULL;
    if (ack) {
        outbox_acknowledge(push->outbox, ack->acknowledged);
    } else if (!push_keeps(result->status)) {
        outbox_acknowledge(push->outbox, push->last_sent);
        push->refused += waiting - outbox_count(push->outbox);
    }
    /* Back off from a server that acknowledges nothing. */
    uint32_t delay_ms = 0;
    if (outbox_count(push->outbox) < waiting) {
        push->failures = 0;
    } else {
        double uniform =
            random_uniform(rpc_client_id(push->client), push->last_sent, push->failures);
        delay_ms = rpc_backoff_ms(push->failures++, uniform);
    }
    push_send(push, delay_ms);
}

struct rpc_push *rpc_push_start(struct rpc_client *client, unsigned method, const char *stream,
                                size_t record_count_max)
{
    const struct rpc_method *row = &rpc_client_service(client)->methods[method];
    assert(row->kind == RPC_CLIENT_STREAM);
    struct rpc_push *push = xcalloc(1, sizeof *push);
    push->client = client;
    push->method = method;
    push->stream = xstrdup(stream);
    push->outbox = outbox_create(record_count_max);
    push->batch_bytes_max = row->request_bytes_max / 3 * 2;
    return push;
}

void rpc_push_hold(struct rpc_push *push)
{
    if (!push)
        return;
    if (push->pending)
        rpc_pending_cancel(push->pending);
    push->pending = NULL;
    push->client = NULL;
}

void rpc_push_resume(struct rpc_push *push, struct rpc_client *client)
{
    assert(!push->client);
    push->client = client;
    push->failures = 0;
    push_send(push, 0);
}

void rpc_push_stop(struct rpc_push *push)
{
    if (!push)
        return;
    rpc_push_hold(push);
    outbox_destroy(push->outbox);
    free(push->stream);
    free(push);
}

int rpc_push_append(struct rpc_push *push, const void *data, size_t size, struct error *err)
{
    if (size > push->batch_bytes_max)
        return error_set(err, -EMSGSIZE, "a record of %zu bytes is too large to push: at most %zu",
                         size, push->batch_bytes_max);
    outbox_append(push->outbox, data, size);
    if (push->client && !push->pending)
        push_send(push, 0);
    return 0;
}

size_t rpc_push_waiting(const struct rpc_push *push)
{
    return outbox_count(push->outbox);
}

uint64_t rpc_push_newest(const struct rpc_push *push)
{
    return outbox_newest(push->outbox);
}

bool rpc_push_settled(const struct rpc_push *push, uint64_t number)
{
    return outbox_newest(push->outbox) - outbox_count(push->outbox) >= number;
}

uint64_t rpc_push_lost(const struct rpc_push *push)
{
    return outbox_dropped(push->outbox) + push->refused;
}
