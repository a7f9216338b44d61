/* pending.c - what happens to a call on its client's thread: start, cancellation, and result. */
#include "common/rpc/pending.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/rpc/attempts.h"

#include <inttypes.h>
#include <stdlib.h>

/* Checks that the call can be sent at all, and opens what it needs. */
static enum rpc_status prepare(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    bool held = pending->method->kind == RPC_HELD;
    int rc = attempts_open(pending);
    if (rc != 0) {
        error_set(&pending->err, 0, "the request %s: %s", pending->method->asked, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (pending->payload_size > pending->method->request_bytes_max) {
        error_set(&pending->err, 0, "a request %s may have %zu bytes, this one has %zu",
                  pending->method->asked, pending->method->request_bytes_max,
                  pending->payload_size);
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (held && client->held_port == 0) {
        error_set(&pending->err, 0,
                  "the request %s comes before the session is open: open it first",
                  pending->method->asked);
        return RPC_FAILED_PRECONDITION;
    }
    pending->connection = held ? &client->held : &client->unary;
    rc = nng_ctx_open(&pending->ctx, pending->connection->socket);
    if (rc != 0) {
        error_set(&pending->err, 0, "the request %s: %s", pending->method->asked, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    pending->ctx_open = true;
    return RPC_OK;
}

static char *make_key(const struct rpc_pending *pending, const struct rpc_call_options *options)
{
    if (options->idempotency_key)
        return xstrdup(options->idempotency_key);
    if (pending->method->idempotent)
        return xstrdup("");
    return xasprintf("%016" PRIx64 "-%" PRIu64, pending->client->id, pending->call_id);
}

static void join_list(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    pending->next = client->calls;
    if (client->calls)
        client->calls->previous = pending;
    client->calls = pending;
}

static void leave_list(struct rpc_pending *pending)
{
    if (pending->next)
        pending->next->previous = pending->previous;
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        pending->client->calls = pending->next;
}

struct rpc_pending *pending_start(struct rpc_client *client, unsigned method,
                                  const ProtobufCMessage *request,
                                  const struct rpc_call_options *options, rpc_done_cb done,
                                  void *data)
{
    struct rpc_pending *pending = xcalloc(1, sizeof *pending);
    pending->client = client;
    pending->method = &client->service->methods[method];
    pending->method_index = method;
    pending->done = done;
    pending->data = data;
    pending->call_id = ++client->next_call_id;
    pending->trace_id = options->trace_id;
    pending->idempotency_key = make_key(pending, options);
    pending->payload = message_pack(request, &pending->payload_size);
    pending->deadline_ms = options->deadline_ms;
    pending->deadline_at_ms = clock_ms() + options->delay_ms + options->deadline_ms;
    pending->may_repeat = pending->method->idempotent && !options->once;
    join_list(pending);
    pending->status = prepare(pending);
    pending->unsendable = pending->status != RPC_OK;
    attempts_begin(pending, options->delay_ms);
    return pending;
}

/* Removes the call from the list of those whose callbacks are to run. */
static void leave_finished(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    pthread_mutex_lock(&client->lock);
    for (struct rpc_pending **at = &client->finished; *at; at = &(*at)->next_done) {
        if (*at != pending)
            continue;
        *at = pending->next_done;
        if (client->finished_end == &pending->next_done)
            client->finished_end = at;
        break;
    }
    pthread_mutex_unlock(&client->lock);
}

void pending_destroy(struct rpc_pending *pending)
{
    if (pending->timer)
        nng_aio_stop(pending->timer);
    if (pending->aio) {
        nng_aio_stop(pending->aio);                  /* no step runs any more */
        nng_msg_free(nng_aio_get_msg(pending->aio)); /* of a step that was not begun */
    }
    leave_finished(pending);
    if (pending->ctx_open)
        nng_ctx_close(pending->ctx);
    nng_aio_free(pending->aio);
    nng_aio_free(pending->timer);
    leave_list(pending);
    if (pending->answer)
        message_free(&pending->answer->base);
    free(pending->payload);
    free(pending->idempotency_key);
    free(pending);
}

enum rpc_status pending_settle(struct rpc_pending *pending, ProtobufCMessage **reply)
{
    *reply = NULL;
    if (pending->status != RPC_OK)
        return pending->status;
    const ProtobufCBinaryData *payload = &pending->answer->payload;
    const ProtobufCMethodDescriptor *method =
        &pending->client->service->descriptor->methods[pending->method_index];
    if (message_unpack(method->output, payload->data, payload->len, message_quota(payload->len),
                       reply, &pending->err) == 0)
        return RPC_OK;
    error_prefix(&pending->err, 0, "the answer of %s to the request %s",
                 pending->client->address_text, pending->method->asked);
    return RPC_INTERNAL;
}
