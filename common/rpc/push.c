/* push.c - sends the outbox of sequence.h batch by batch, and retries what is worth retrying. */
#include "common/rpc/push.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/backoff.h"
#include "common/rpc/sequence.h"
#include "proto/stream.pb-c.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define PUSH_DEADLINE_MS 10000
#define BATCH_COUNT_MAX 1024

struct rpc_push {
    struct rpc_client *client;
    unsigned method;
    char *stream;
    struct outbox *outbox;
    size_t batch_bytes_max; /* of records; a third of what the method takes is left for framing */
    struct rpc_pending *pending;
    uint64_t last_sent; /* sequence of the last record under way */
    unsigned failures;  /* since the last acknowledgement */
    uint64_t refused;
};

static void answered(void *data, const struct rpc_result *result);

static void send_batch(struct rpc_push *push, uint32_t delay_ms)
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
        rpc_client_start(push->client, push->method, &batch.base, &options, answered, push);
}

/* Is the failure temporary, and not due to the records? Then they are kept and sent again. */
static bool will_pass(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_RESOURCE_EXHAUSTED || status == RPC_FAILED_PRECONDITION ||
           status == RPC_UNAUTHENTICATED || status == RPC_ABORTED;
}

static void answered(void *data, const struct rpc_result *result)
{
    struct rpc_push *push = data;
    const Gimbal__PushAck *ack = result->reply;
    size_t waiting = outbox_count(push->outbox);
    push->pending = NULL;
    if (ack) {
        outbox_acknowledge(push->outbox, ack->acknowledged);
    } else if (!will_pass(result->status)) {
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
        delay_ms = backoff_ms(push->failures++, uniform);
    }
    send_batch(push, delay_ms);
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

void rpc_push_stop(struct rpc_push *push)
{
    if (!push)
        return;
    if (push->pending)
        rpc_pending_cancel(push->pending);
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
    if (!push->pending)
        send_batch(push, 0);
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
