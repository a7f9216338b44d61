/* pending.c - the steps of a call: wait, send, receive, and perhaps all again. */
#include "common/rpc/pending.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/backoff.h"
#include "common/rpc/clock.h"
#include "common/rpc/envelope.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

static void finish(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    pthread_mutex_lock(&client->lock);
    pending->is_done = true;
    if (pending->done) {
        pending->next_done = NULL;
        *client->finished_end = pending;
        client->finished_end = &pending->next_done;
        eventfd_write(client->fd, 1);
    } else {
        pthread_cond_broadcast(&client->done);
    }
    pthread_mutex_unlock(&client->lock);
}

static nng_msg *encode_request(const struct rpc_pending *pending, uint32_t left_ms)
{
    struct rpc_client *client = pending->client;
    Gimbal__Envelope request = GIMBAL__ENVELOPE__INIT;
    pthread_mutex_lock(&client->lock);
    request.term = client->fence.term;
    request.instance = client->fence.instance;
    pthread_mutex_unlock(&client->lock);
    request.protocol_major = RPC_PROTOCOL_MAJOR;
    request.protocol_minor = RPC_PROTOCOL_MINOR;
    request.kind = GIMBAL__ENVELOPE__KIND__REQUEST;
    request.call_id = pending->call_id;
    request.method = (char *)pending->method->name;
    request.deadline_ms = left_ms;
    request.client = client->id;
    request.caller = client->caller;
    request.credential = client->credential;
    request.trace_id = pending->trace_id;
    request.idempotency_key = pending->idempotency_key;
    request.payload.data = pending->payload;
    request.payload.len = pending->payload_size;
    return envelope_encode(&request);
}

/* A timeout for NNG; deadlines beyond its range are cut, to 24 days. */
static nng_duration duration(uint32_t left_ms)
{
    return left_ms > INT32_MAX ? INT32_MAX : (nng_duration)left_ms;
}

static uint32_t left_ms(const struct rpc_pending *pending)
{
    return rpc_clock_left_ms(pending->deadline_at_ms, rpc_clock_ms());
}

static void wait_then_send(struct rpc_pending *pending, uint32_t wait_ms)
{
    pending->phase = PENDING_WAITING;
    nng_aio_set_timeout(pending->aio, NNG_DURATION_INFINITE);
    nng_sleep_aio(duration(wait_ms), pending->aio);
}

/* The call has failed with pending's status; try again where that may help and is allowed. */
static void fail(struct rpc_pending *pending)
{
    if (pending->may_repeat && pending->status == RPC_UNAVAILABLE) {
        double uniform = random_uniform(pending->client->id, pending->call_id, pending->attempt);
        uint32_t wait_ms = backoff_ms(pending->attempt++, uniform);
        if (wait_ms < left_ms(pending)) {
            wait_then_send(pending, wait_ms);
            return;
        }
    }
    finish(pending);
}

static void send_request(struct rpc_pending *pending)
{
    uint32_t left = left_ms(pending);
    nng_msg *frame = left > 0 ? encode_request(pending, left) : NULL;
    if (!frame) {
        pending->status = left > 0 ? RPC_RESOURCE_EXHAUSTED : RPC_DEADLINE_EXCEEDED;
        error_set(&pending->err, 0, "%s could not be sent %s", pending->method->name,
                  left > 0 ? "for want of memory" : "before its deadline");
        finish(pending);
        return;
    }
    pending->phase = PENDING_SENDING;
    pending->sent_ms = rpc_clock_ms();
    nng_aio_set_msg(pending->aio, frame);
    nng_aio_set_timeout(pending->aio, duration(left));
    nng_ctx_send(pending->ctx, pending->aio);
}

/* What NNG's error means for the call. */
static void explain(struct rpc_pending *pending, int rc)
{
    const char *name = pending->method->name, *address = pending->client->address_text;
    if (rc == NNG_ECANCELED || rc == NNG_ECLOSED) {
        pending->status = RPC_CANCELLED;
        error_set(&pending->err, 0, "%s was given up", name);
    } else if (rc == NNG_ETIMEDOUT && pending->phase == PENDING_RECEIVING) {
        connection_suspect(pending->connection, pending->sent_ms);
        pending->status = RPC_DEADLINE_EXCEEDED;
        error_set(&pending->err, 0, "%s: %s did not answer within %" PRIu32 " ms", name, address,
                  pending->deadline_ms);
    } else if (rc == NNG_ETIMEDOUT) {
        /* There is no connection, or one that takes nothing: a call that was cancelled may have
         * got stuck in it, and will suspect nobody. */
        connection_suspect(pending->connection, pending->sent_ms);
        pending->status = RPC_UNAVAILABLE;
        error_set(&pending->err, 0,
                  "%s: no connection to %s within %" PRIu32 " ms; is the coordinator running%s?",
                  name, address, pending->deadline_ms,
                  pending->client->tls ? ", and do both sides' certificates hold" : "");
    } else {
        pending->status = RPC_UNAVAILABLE;
        error_set(&pending->err, 0, "%s: the connection to %s was lost: %s%s", name, address,
                  nng_strerror(rc),
                  pending->method->idempotent ? "" : "; whether it was done is not known");
    }
}

/* Whether the answer is one, and to this call. */
static int check_answer(const struct rpc_pending *pending, nng_msg *frame,
                        Gimbal__Envelope **answer, struct error *err)
{
    int rc = envelope_decode(frame, answer, err);
    if (rc == 0)
        rc = envelope_check_version(*answer, err);
    if (rc == 0 && ((*answer)->kind != GIMBAL__ENVELOPE__KIND__REPLY ||
                    (*answer)->call_id != pending->call_id))
        rc = error_set(err, -EPROTO, "it is no answer to this call");
    return rc;
}

static void take_answer(struct rpc_pending *pending)
{
    nng_msg *frame = nng_aio_get_msg(pending->aio);
    nng_aio_set_msg(pending->aio, NULL);
    connection_heard(pending->connection);
    Gimbal__Envelope *answer = NULL;
    int rc = check_answer(pending, frame, &answer, &pending->err);
    if (rc < 0) {
        pending->status = rc == -ESTALE ? RPC_FAILED_PRECONDITION : RPC_INTERNAL;
        error_prefix(&pending->err, 0, "%s: answer of %s", pending->method->name,
                     pending->client->address_text);
        if (answer)
            message_free(&answer->base);
    } else {
        pending->status = rpc_status_of_number(answer->status);
        error_set(&pending->err, 0, "%s", answer->status_text);
        pending->answer = answer;
    }
    nng_msg_free(frame);
    if (pending->status == RPC_OK) {
        finish(pending);
        return;
    }
    if (pending->answer)
        message_free(&pending->answer->base);
    pending->answer = NULL;
    fail(pending);
}

/* On one of NNG's threads, at the end of every step. */
static void progress(void *data)
{
    struct rpc_pending *pending = data;
    int rc = nng_aio_result(pending->aio);
    if (rc != 0) {
        if (pending->phase == PENDING_SENDING) {
            nng_msg_free(nng_aio_get_msg(pending->aio)); /* not sent, so still ours */
            nng_aio_set_msg(pending->aio, NULL);
        }
        explain(pending, rc);
        fail(pending);
        return;
    }
    switch (pending->phase) {
    case PENDING_WAITING:
        if (pending->unsendable)
            finish(pending);
        else
            send_request(pending);
        break;
    case PENDING_SENDING:
        pending->phase = PENDING_RECEIVING;
        pending->sent_ms = rpc_clock_ms();
        nng_aio_set_msg(pending->aio, NULL);
        nng_aio_set_timeout(pending->aio, duration(left_ms(pending)));
        nng_ctx_recv(pending->ctx, pending->aio);
        break;
    case PENDING_RECEIVING:
        take_answer(pending);
        break;
    }
}

/* Open what the call needs; what cannot be sent at all ends here. */
static enum rpc_status prepare(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    bool held = pending->method->kind == RPC_HELD;
    int rc = nng_aio_alloc(&pending->aio, progress, pending);
    if (rc != 0) {
        error_set(&pending->err, 0, "%s: %s", pending->method->name, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (pending->payload_size > pending->method->request_bytes_max) {
        error_set(&pending->err, 0, "a request to %s may have %zu bytes, this one has %zu",
                  pending->method->name, pending->method->request_bytes_max, pending->payload_size);
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (held && client->held_port == 0) {
        error_set(&pending->err, 0, "%s is a held call: say Hello first", pending->method->name);
        return RPC_FAILED_PRECONDITION;
    }
    pending->connection = held ? &client->held : &client->unary;
    rc = nng_ctx_open(&pending->ctx, pending->connection->socket);
    if (rc != 0) {
        error_set(&pending->err, 0, "%s: %s", pending->method->name, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    pending->ctx_open = true;
    return RPC_OK;
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
    pending->payload = message_pack(request, &pending->payload_size);
    pending->deadline_ms = options->deadline_ms;
    pending->deadline_at_ms = rpc_clock_ms() + options->delay_ms + options->deadline_ms;
    pending->may_repeat = pending->method->idempotent && !options->once;
    if (options->idempotency_key)
        pending->idempotency_key = xstrdup(options->idempotency_key);
    else if (pending->method->idempotent)
        pending->idempotency_key = xstrdup("");
    else
        pending->idempotency_key =
            xasprintf("%016" PRIx64 "-%" PRIu64, client->id, pending->call_id);
    pending->next = client->calls;
    if (client->calls)
        client->calls->previous = pending;
    client->calls = pending;

    pending->status = prepare(pending);
    pending->unsendable = pending->status != RPC_OK;
    if (pending->unsendable && (!pending->aio || !options->delay_ms))
        finish(pending);
    else if (options->delay_ms) /* also what will fail: its caller may start it again at once */
        wait_then_send(pending, options->delay_ms);
    else
        send_request(pending);
    return pending;
}

/* Out of the list of those whose callbacks are to run. */
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
    struct rpc_client *client = pending->client;
    if (pending->aio) {
        nng_aio_stop(pending->aio);                  /* no step runs any more */
        nng_msg_free(nng_aio_get_msg(pending->aio)); /* of a step that was not begun */
    }
    leave_finished(pending);
    if (pending->ctx_open)
        nng_ctx_close(pending->ctx);
    nng_aio_free(pending->aio);
    if (pending->next)
        pending->next->previous = pending->previous;
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        client->calls = pending->next;
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
    error_prefix(&pending->err, 0, "%s: reply of %s", method->name, pending->client->address_text);
    return RPC_INTERNAL;
}
