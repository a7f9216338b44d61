/* call.c - the cycle of a call object: receive, be handled, send, receive again. */
#include "common/rpc/server_internal.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/message/message.h"
#include "common/rpc/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* How many contexts of a socket wait for calls. More calls than this at a time wait in their
 * connections, which slows their senders down. */
#define RECEIVING_COUNT 32
/* A caller that does not read its answer for this long does not get it. */
#define SEND_TIMEOUT_MS 10000

void server_raise(struct rpc_server *server)
{
    eventfd_write(server->fd, 1); /* fails only when it is raised 2^64 times already */
}

/* Hands a call to the polling thread. */
static void server_arrived(struct rpc_server *server, struct rpc_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&server->lock);
    *server->arrived_end = call;
    server->arrived_end = &call->next;
    pthread_mutex_unlock(&server->lock);
    server_raise(server);
}

static void call_receive(struct rpc_call *call)
{
    call->state = CALL_RECEIVING;
    nng_aio_set_timeout(call->aio, NNG_DURATION_INFINITE);
    nng_ctx_recv(call->ctx, call->aio);
}

/* Runs on one of NNG's threads. A closed socket ends the cycle, anything else continues it. */
static void call_progress(void *data)
{
    struct rpc_call *call = data;
    int rc = nng_aio_result(call->aio);
    if (call->state == CALL_SENDING && rc != 0) {
        nng_msg_free(nng_aio_get_msg(call->aio)); /* what was not sent is still ours */
        nng_aio_set_msg(call->aio, NULL);
    }
    if (rc == NNG_ECLOSED || rc == NNG_ECANCELED)
        return;
    if (call->state == CALL_SENDING || rc != 0) {
        call_receive(call);
        return;
    }
    call->frame = nng_aio_get_msg(call->aio);
    nng_aio_set_msg(call->aio, NULL);
    call->pipe = nng_msg_get_pipe(call->frame);
    call->arrived_ms = call->server->options.clock_cb();
    call->arrived_ns = clock_ns();
    call->state = CALL_QUEUED;
    server_arrived(call->server, call);
}

static int call_open(struct endpoint *endpoint, struct error *err)
{
    struct rpc_call *call = xcalloc(1, sizeof *call);
    call->server = endpoint->server;
    call->endpoint = endpoint;
    int rc = nng_aio_alloc(&call->aio, call_progress, call);
    if (rc == 0)
        rc = nng_ctx_open(&call->ctx, endpoint->socket);
    if (rc != 0) {
        nng_aio_free(call->aio);
        free(call);
        return error_set(err, -ENOMEM, "open a context for calls: %s", nng_strerror(rc));
    }
    endpoint->calls = grow(endpoint->calls, endpoint->call_count, &endpoint->call_capacity,
                           sizeof *endpoint->calls);
    endpoint->calls[endpoint->call_count++] = call;
    call_receive(call);
    return 0;
}

int call_open_spares(struct endpoint *endpoint, struct error *err)
{
    size_t count_max = endpoint->server->options.held_count_max + RECEIVING_COUNT;
    while (endpoint->call_count < endpoint->kept_count + RECEIVING_COUNT &&
           endpoint->call_count < count_max) {
        int rc = call_open(endpoint, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void call_run(struct rpc_call *call)
{
    struct endpoint *endpoint = call->endpoint;
    const struct handler *handler = &call->server->handlers[call->method];
    /* Counted before the handler runs: once answered, the object may already be another call. */
    if (!call->kept)
        endpoint->kept_count++;
    call->kept = true;
    call->state = CALL_RUNNING;
    handler->cb(call, handler->data);
    /* If that fails, the existing contexts have to do. */
    call_open_spares(endpoint, NULL);
}

/* The call is answered and no longer counts among those that keep a context. */
static void call_unkeep(struct rpc_call *call)
{
    if (call->kept)
        call->endpoint->kept_count--;
    call->kept = false;
}

/* Frees everything that belongs to one cycle. */
static void call_forget(struct rpc_call *call)
{
    if (call->frame)
        nng_msg_free(call->frame);
    if (call->answer)
        nng_msg_free(call->answer);
    if (call->envelope)
        message_free(&call->envelope->base);
    message_free(call->request);
    free(call->stream);
    call->frame = NULL;
    call->answer = NULL;
    call->envelope = NULL;
    call->request = NULL;
    call->stream = NULL;
    call_unkeep(call);
}

void call_destroy(struct rpc_call *call)
{
    nng_aio_free(call->aio); /* waits for call_progress() to return */
    call_forget(call);
    free(call);
}

/* The frame of an answer; NULL only when NNG is out of memory. */
static nng_msg *call_encode_answer(const struct rpc_call *call, enum rpc_status status,
                                   const char *text, const void *payload, size_t payload_size)
{
    const struct rpc_server_options *options = &call->server->options;
    Gimbal__Envelope answer = GIMBAL__ENVELOPE__INIT;
    char mended[ERROR_SIZE];
    snprintf(mended, sizeof mended, "%s", text);
    text_mend(mended);
    answer.protocol_major = RPC_PROTOCOL_MAJOR;
    answer.protocol_minor = RPC_PROTOCOL_MINOR;
    answer.kind = GIMBAL__ENVELOPE__KIND__REPLY;
    answer.term = options->term;
    answer.instance = options->instance;
    answer.status = status;
    answer.status_text = mended;
    answer.payload.data = (void *)payload;
    answer.payload.len = payload_size;
    if (call->envelope) {
        answer.call_id = call->envelope->call_id;
        answer.trace_id = call->envelope->trace_id;
        answer.client = call->envelope->client;
    }
    return envelope_encode(&answer);
}

static void call_send_answer(struct rpc_call *call, nng_msg *answer)
{
    call_forget(call);
    if (!answer) {
        call_receive(call); /* the caller's deadline tells it */
        return;
    }
    call->state = CALL_SENDING;
    nng_aio_set_msg(call->aio, answer);
    nng_aio_set_timeout(call->aio, SEND_TIMEOUT_MS);
    nng_ctx_send(call->ctx, call->aio);
}

static void call_gather(struct rpc_call *call, nng_msg *answer)
{
    struct rpc_server *server = call->server;
    call_unkeep(call);
    call->state = CALL_ANSWERED;
    call->answer = answer;
    call->next = NULL;
    *server->answered_end = call;
    server->answered_end = &call->next;
}

/* Removes and returns the first gathered call; NULL when there is none. */
static struct rpc_call *call_take_answered(struct rpc_server *server)
{
    struct rpc_call *call = server->answered;
    if (!call)
        return NULL;
    server->answered = call->next;
    if (!server->answered)
        server->answered_end = &server->answered;
    return call;
}

void rpc_server_release(struct rpc_server *server)
{
    struct rpc_call *call;
    while ((call = call_take_answered(server))) {
        nng_msg *answer = call->answer;
        call->answer = NULL;
        call_send_answer(call, answer);
    }
}

void rpc_server_withdraw(struct rpc_server *server, const char *words)
{
    struct rpc_call *call;
    while ((call = call_take_answered(server)))
        call_send_answer(call, call_encode_answer(call, RPC_UNAVAILABLE, words, NULL, 0));
}

void call_answer(struct rpc_call *call, enum rpc_status status, const char *text,
                 const ProtobufCMessage *payload)
{
    assert(call->state == CALL_QUEUED || call->state == CALL_RUNNING);
    size_t size = 0;
    void *bytes = payload ? message_pack(payload, &size) : NULL;
    if (size > RPC_REPLY_BYTES_MAX) {
        status = RPC_RESOURCE_EXHAUSTED;
        text = "the answer is larger than a reply may be: ask for less at a time";
        size = 0;
    }
    nng_msg *answer = call_encode_answer(call, status, text, bytes, size);
    free(bytes);
    call->server->counters.answered[status]++;
    if (call->server->options.gather)
        call_gather(call, answer);
    else
        call_send_answer(call, answer);
}

void rpc_call_reply(struct rpc_call *call, const ProtobufCMessage *reply)
{
    assert(reply->descriptor ==
           call->server->options.service->descriptor->methods[call->method].output);
    call_answer(call, RPC_OK, "", reply);
}

void rpc_call_fail(struct rpc_call *call, enum rpc_status status, const char *format, ...)
{
    char text[ERROR_SIZE];
    va_list arguments;
    assert(status != RPC_OK);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    call_answer(call, status, text, NULL);
}

void rpc_call_fail_errno(struct rpc_call *call, int rc, const struct error *err)
{
    assert(rc < 0);
    call_answer(call, rpc_status_of_errno(rc), err->text, NULL);
}

const void *rpc_call_request(const struct rpc_call *call)
{
    return call->request;
}

const Gimbal__Envelope *rpc_call_envelope(const struct rpc_call *call)
{
    return call->envelope;
}

unsigned rpc_call_roles(const struct rpc_call *call)
{
    return call->listener->roles;
}
