/* attempt.c - the steps of a call: wait, send, receive, and perhaps all of them again.
 *
 * Each step ends in attempt_progress(), which runs on one of NNG's threads and begins the next
 * step. Pauses between attempts back off exponentially, with equal jitter. */
#include "common/rpc/client_internal.h"

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/message/message.h"
#include "common/rpc/client.h"
#include "common/rpc/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/eventfd.h>

uint32_t rpc_backoff_ms(unsigned attempt, double uniform)
{
    uint32_t wait = RPC_BACKOFF_MS_MIN;
    while (attempt-- > 0 && wait < RPC_BACKOFF_MS_MAX)
        wait *= 2;
    if (wait > RPC_BACKOFF_MS_MAX)
        wait = RPC_BACKOFF_MS_MAX;
    return wait - (uint32_t)(uniform * 0.5 * wait);
}

uint32_t rpc_hindrance_ms(const struct rpc_hindrance *hindrance, uint64_t now_ms)
{
    uint32_t left_ms = clock_left_ms(hindrance->until_ms, now_ms);
    return left_ms > 0 && hindrance->delay_ms > 0 ? hindrance->delay_ms : left_ms;
}

static void attempt_finish(struct rpc_pending *pending)
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

static nng_msg *attempt_encode(const struct rpc_pending *pending, uint32_t left_ms)
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

/* A timeout for NNG, capped at its maximum of 24 days. */
static nng_duration attempt_duration(uint32_t left_ms)
{
    return left_ms > INT32_MAX ? INT32_MAX : (nng_duration)left_ms;
}

static uint32_t left_ms(const struct rpc_pending *pending)
{
    return clock_left_ms(pending->deadline_at_ms, clock_ms());
}

static void attempt_wait(struct rpc_pending *pending, enum pending_phase phase, uint32_t wait_ms)
{
    pending->phase = phase;
    nng_sleep_aio(attempt_duration(wait_ms), pending->timer);
}

/* Hold the call in this phase if its client is hindered, but no longer than until its deadline. */
static bool attempt_hold(struct rpc_pending *pending, enum pending_phase phase)
{
    struct rpc_client *client = pending->client;
    pthread_mutex_lock(&client->lock);
    uint32_t held_ms = rpc_hindrance_ms(&client->hindrance, clock_ms());
    pthread_mutex_unlock(&client->lock);
    uint32_t left = left_ms(pending);
    if (held_ms == 0 || left == 0)
        return false;
    attempt_wait(pending, phase, held_ms < left ? held_ms : left);
    return true;
}

/* The attempt failed with pending->status: try again if that may help and is allowed. */
static void attempt_fail(struct rpc_pending *pending)
{
    if (pending->may_repeat && pending->status == RPC_UNAVAILABLE) {
        double uniform = random_uniform(pending->client->id, pending->call_id, pending->attempt);
        uint32_t wait_ms = rpc_backoff_ms(pending->attempt++, uniform);
        if (wait_ms < left_ms(pending)) {
            attempt_wait(pending, PENDING_WAITING, wait_ms);
            return;
        }
    }
    attempt_finish(pending);
}

static void attempt_send(struct rpc_pending *pending)
{
    uint32_t left = left_ms(pending);
    nng_msg *frame = left > 0 ? attempt_encode(pending, left) : NULL;
    if (!frame) {
        pending->status = left > 0 ? RPC_RESOURCE_EXHAUSTED : RPC_DEADLINE_EXCEEDED;
        error_set(&pending->err, 0, "the request %s could not be sent %s", pending->method->asked,
                  left > 0 ? "for want of memory" : "before its deadline");
        attempt_finish(pending);
        return;
    }
    pending->phase = PENDING_SENDING;
    pending->sent_ms = clock_ms();
    nng_aio_set_msg(pending->aio, frame);
    nng_aio_set_timeout(pending->aio, attempt_duration(left));
    nng_ctx_send(pending->ctx, pending->aio);
}

/* Send the request as soon as it may leave. */
static void attempt_leave(struct rpc_pending *pending)
{
    if (!attempt_hold(pending, PENDING_LEAVING))
        attempt_send(pending);
}

static void attempt_explain_silence(struct rpc_pending *pending)
{
    pending->status = RPC_DEADLINE_EXCEEDED;
    error_set(&pending->err, 0, "%s did not answer the request %s within %" PRIu32 " ms",
              pending->client->address_text, pending->method->asked, pending->deadline_ms);
}

/* Translates an error of NNG into the call's status and text. */
static void attempt_explain(struct rpc_pending *pending, int rc)
{
    const char *asked = pending->method->asked, *address = pending->client->address_text;
    if (rc == NNG_ECANCELED || rc == NNG_ECLOSED) {
        pending->status = RPC_CANCELLED;
        error_set(&pending->err, 0, "the request %s was given up", asked);
    } else if (rc == NNG_ETIMEDOUT && pending->phase == PENDING_RECEIVING) {
        connection_suspect(pending->connection, pending->sent_ms);
        attempt_explain_silence(pending);
    } else if (rc == NNG_ETIMEDOUT) {
        /* There is no connection, or one that takes nothing, perhaps because a cancelled call got
         * stuck in it; that call will not report it. */
        connection_suspect(pending->connection, pending->sent_ms);
        pending->status = RPC_UNAVAILABLE;
        error_set(&pending->err, 0,
                  "no connection to %s within %" PRIu32
                  " ms for the request %s; is the coordinator running%s?",
                  address, pending->deadline_ms, asked,
                  pending->client->tls ? ", and do both sides' certificates hold" : "");
    } else {
        pending->status = RPC_UNAVAILABLE;
        error_set(&pending->err, 0, "the connection to %s was lost during the request %s: %s%s",
                  address, asked, nng_strerror(rc),
                  pending->method->idempotent ? "" : "; whether it was done is not known");
    }
}

/* Checks that the frame is an answer, and to this call. */
static int attempt_check_answer(const struct rpc_pending *pending, nng_msg *frame,
                                Gimbal__Envelope **answer, struct error *err)
{
    int rc = envelope_decode(frame, answer, err);
    if (rc == 0)
        rc = rpc_check_version(*answer, err);
    if (rc == 0 && ((*answer)->kind != GIMBAL__ENVELOPE__KIND__REPLY ||
                    (*answer)->call_id != pending->call_id))
        rc = error_set(err, -EPROTO, "it is no answer to this call");
    return rc;
}

/* End the attempt with the answer that came, or without one. */
static void attempt_conclude(struct rpc_pending *pending)
{
    if (pending->status == RPC_OK) {
        attempt_finish(pending);
        return;
    }
    if (pending->answer)
        message_free(&pending->answer->base);
    pending->answer = NULL;
    attempt_fail(pending);
}

static void attempt_take_answer(struct rpc_pending *pending)
{
    nng_msg *frame = nng_aio_get_msg(pending->aio);
    nng_aio_set_msg(pending->aio, NULL);
    connection_heard(pending->connection);
    Gimbal__Envelope *answer = NULL;
    int rc = attempt_check_answer(pending, frame, &answer, &pending->err);
    if (rc < 0) {
        pending->status = rc == -ESTALE ? RPC_FAILED_PRECONDITION : RPC_INTERNAL;
        error_prefix(&pending->err, 0, "the answer of %s to the request %s",
                     pending->client->address_text, pending->method->asked);
        if (answer)
            message_free(&answer->base);
    } else {
        pending->status = rpc_status_of_number(answer->status);
        error_set(&pending->err, 0, "%s", answer->status_text);
        pending->answer = answer;
    }
    nng_msg_free(frame);
    if (!attempt_hold(pending, PENDING_ARRIVED))
        attempt_conclude(pending);
}

/* On one of NNG's threads, at the end of every step. */
static void attempt_progress(void *data)
{
    struct rpc_pending *pending = data;
    bool moves = pending->phase == PENDING_SENDING || pending->phase == PENDING_RECEIVING;
    int rc = nng_aio_result(moves ? pending->aio : pending->timer);
    if (rc != 0) {
        if (pending->phase == PENDING_SENDING) {
            nng_msg_free(nng_aio_get_msg(pending->aio)); /* not sent, so still ours */
            nng_aio_set_msg(pending->aio, NULL);
        }
        attempt_explain(pending, rc);
        attempt_fail(pending);
        return;
    }
    switch (pending->phase) {
    case PENDING_WAITING:
        if (pending->unsendable)
            attempt_finish(pending);
        else
            attempt_leave(pending);
        break;
    case PENDING_LEAVING:
        attempt_send(pending);
        break;
    case PENDING_SENDING:
        pending->phase = PENDING_RECEIVING;
        pending->sent_ms = clock_ms();
        nng_aio_set_msg(pending->aio, NULL);
        nng_aio_set_timeout(pending->aio, attempt_duration(left_ms(pending)));
        nng_ctx_recv(pending->ctx, pending->aio);
        break;
    case PENDING_RECEIVING:
        attempt_take_answer(pending);
        break;
    case PENDING_ARRIVED:
        if (left_ms(pending) == 0)
            attempt_explain_silence(pending);
        attempt_conclude(pending);
        break;
    }
}

int attempt_open(struct rpc_pending *pending)
{
    int rc = nng_aio_alloc(&pending->aio, attempt_progress, pending);
    return rc == 0 ? nng_aio_alloc(&pending->timer, attempt_progress, pending) : rc;
}

void attempt_begin(struct rpc_pending *pending, uint32_t delay_ms)
{
    if (pending->unsendable && (!pending->timer || delay_ms == 0))
        attempt_finish(pending);
    else if (delay_ms > 0) /* also what will fail: its caller may start it again at once */
        attempt_wait(pending, PENDING_WAITING, delay_ms);
    else
        attempt_leave(pending);
}
