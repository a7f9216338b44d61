/* held.c - calls that wait: at most one per (client, stream, lane), parked until it is woken,
 * replaced, reaped or due; among them the polls of a stream.
 *
 * They are kept in an array that is searched linearly: a thousand workers park some fifty calls a
 * second, and comparing a thousand hashes takes microseconds.
 *
 * A parked call ends with its connection, and a client that has made held calls is gone with its
 * last connection. NNG reports a killed peer within a millisecond, but never one that is stopped or
 * out of reach, whose calls therefore stay until they are due. A client that gave up a connection
 * has another, and the end of the old one may be reported long after. A client that never made a
 * held call may be between its first connection and its second, so it is never reported as gone. */
#include "common/rpc/server_internal.h"

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/rpc/records.h"
#include "proto/envelope.pb-c.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The largest batch; the rest is for the next poll. */
#define BATCH_BYTES_MAX ((size_t)4 << 20)

static struct peer *peers_find(struct rpc_server *server, int pipe)
{
    for (size_t i = 0; i < server->peer_count; i++)
        if (server->peers[i].pipe == pipe)
            return &server->peers[i];
    return NULL;
}

void peers_changed(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    struct rpc_server *server = data;
    int id = nng_pipe_id(pipe);
    pthread_mutex_lock(&server->lock);
    struct peer *peer = peers_find(server, id);
    bool is_gone = event == NNG_PIPE_EV_REM_POST && peer;
    if (event == NNG_PIPE_EV_ADD_PRE && !peer) {
        server->peers =
            grow(server->peers, server->peer_count, &server->peer_capacity, sizeof *server->peers);
        server->peers[server->peer_count++] = (struct peer){.pipe = id};
    } else if (is_gone) {
        server->gone =
            grow(server->gone, server->gone_count, &server->gone_capacity, sizeof *server->gone);
        server->gone[server->gone_count++] = *peer;
        *peer = server->peers[--server->peer_count];
    }
    pthread_mutex_unlock(&server->lock);
    if (is_gone)
        server_raise(server);
}

static struct peer *peers_find_of(struct peer *peers, size_t count, uint64_t client)
{
    for (size_t i = 0; i < count; i++)
        if (peers[i].client == client)
            return &peers[i];
    return NULL;
}

bool peers_end(struct rpc_server *server, struct peer *closed, size_t behind)
{
    if (!closed->client || !closed->holds)
        return false;
    struct peer *other = peers_find_of(closed + 1, behind, closed->client);
    pthread_mutex_lock(&server->lock);
    if (!other)
        other = peers_find_of(server->peers, server->peer_count, closed->client);
    if (other)
        other->holds = true;
    pthread_mutex_unlock(&server->lock);
    return !other;
}

bool peers_claim(struct rpc_server *server, nng_pipe pipe, uint64_t client, bool holds)
{
    pthread_mutex_lock(&server->lock);
    struct peer *peer = peers_find(server, nng_pipe_id(pipe));
    if (peer) {
        peer->client = client;
        peer->holds = peer->holds || holds;
    }
    pthread_mutex_unlock(&server->lock);
    return peer != NULL;
}

static bool on_stream(const struct rpc_call *call, uint64_t hash, const char *stream)
{
    return call->stream_hash == hash && strcmp(call->stream, stream) == 0;
}

/* Removes the call at this index from the array; it is running again. */
static struct rpc_call *held_take(struct rpc_server *server, size_t index)
{
    struct rpc_call *call = server->parked[index];
    server->parked[index] = server->parked[--server->parked_count];
    call->state = CALL_RUNNING;
    return call;
}

static void held_replace_older(const struct rpc_call *newer)
{
    struct rpc_server *server = newer->server;
    for (size_t i = 0; i < server->parked_count; i++) {
        const struct rpc_call *call = server->parked[i];
        if (call->lane == newer->lane && call->envelope->client == newer->envelope->client &&
            on_stream(call, newer->stream_hash, newer->stream)) {
            server->counters.held_replaced++;
            rpc_call_fail(held_take(server, i), RPC_ABORTED,
                          "a newer call of this client waits on '%s' now", newer->stream);
            return;
        }
    }
}

/* When to answer empty: within the server's hold_ms, and early enough to meet the caller's
 * deadline. */
static uint64_t held_until(const struct rpc_call *call)
{
    uint32_t patience = call->envelope->deadline_ms - call->envelope->deadline_ms / 4;
    uint32_t hold = call->server->options.hold_ms;
    return call->arrived_ms + (patience < hold ? patience : hold);
}

void rpc_call_park(struct rpc_call *call, const char *stream, uint64_t lane)
{
    struct rpc_server *server = call->server;
    assert(call->state == CALL_RUNNING && call->endpoint->held);
    if (stream != call->stream) {
        free(call->stream);
        call->stream = xstrdup(stream);
        call->stream_hash = hash_text(HASH_START, stream);
    }
    call->lane = lane;
    call->until_ms = held_until(call);
    held_replace_older(call);
    if (!peers_claim(server, call->pipe, call->envelope->client, true)) {
        server->counters.held_reaped++;
        rpc_call_fail(call, RPC_CANCELLED, "the connection has closed");
        return;
    }
    if (server->parked_count >= server->options.held_count_max) {
        rpc_call_fail(call, RPC_RESOURCE_EXHAUSTED, "%zu calls are held already: try again later",
                      server->parked_count);
        return;
    }
    server->parked = grow(server->parked, server->parked_count, &server->parked_capacity,
                          sizeof *server->parked);
    server->parked[server->parked_count++] = call;
    call->state = CALL_PARKED;
    if (call->until_ms < server->held_next_ms)
        server->held_next_ms = call->until_ms;
}

void rpc_server_wake(struct rpc_server *server, const char *stream)
{
    uint64_t hash = hash_text(HASH_START, stream);
    struct rpc_call *woken = NULL;
    /* Take all of them out before any handler runs, because handlers may park them again. */
    for (size_t i = 0; i < server->parked_count;) {
        if (!on_stream(server->parked[i], hash, stream)) {
            i++;
            continue;
        }
        struct rpc_call *call = held_take(server, i);
        call->next = woken;
        woken = call;
    }
    while (woken) {
        struct rpc_call *call = woken;
        woken = call->next;
        call_run(call);
    }
}

void held_reap(struct rpc_server *server, int pipe)
{
    for (size_t i = 0; i < server->parked_count;) {
        if (nng_pipe_id(server->parked[i]->pipe) != pipe) {
            i++;
            continue;
        }
        server->counters.held_reaped++;
        rpc_call_fail(held_take(server, i), RPC_CANCELLED, "the connection has closed");
    }
}

void rpc_server_dismiss(struct rpc_server *server, unsigned roles, const char *caller,
                        const char *words)
{
    for (size_t i = 0; i < server->parked_count;) {
        const struct rpc_call *call = server->parked[i];
        if (call->listener->roles == roles && strcmp(call->envelope->caller, caller) == 0)
            rpc_call_fail(held_take(server, i), RPC_PERMISSION_DENIED, "%s", words);
        else
            i++;
    }
}

/* Answers "nothing came": the method's reply with all fields at their defaults. */
static void held_answer_empty(struct rpc_call *call)
{
    const ProtobufCMessageDescriptor *type =
        call->server->options.service->descriptor->methods[call->method].output;
    ProtobufCMessage *empty = xcalloc(1, type->sizeof_message);
    protobuf_c_message_init(type, empty);
    call->server->counters.held_empty++;
    rpc_call_reply(call, empty);
    free(empty);
}

void held_expire(struct rpc_server *server, uint64_t now_ms)
{
    if (now_ms < server->held_next_ms)
        return;
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < server->parked_count;) {
        uint64_t until_ms = server->parked[i]->until_ms;
        if (until_ms <= now_ms) {
            held_answer_empty(held_take(server, i));
            continue;
        }
        if (until_ms < next_ms)
            next_ms = until_ms;
        i++;
    }
    server->held_next_ms = next_ms;
}

int rpc_server_timeout_ms(const struct rpc_server *server)
{
    if (server->parked_count == 0)
        return -1;
    uint32_t left = clock_left_ms(server->held_next_ms, server->options.clock_cb());
    return left > INT_MAX ? INT_MAX : (int)left;
}

size_t rpc_server_held_count(const struct rpc_server *server)
{
    return server->parked_count;
}

static void reply_batch(struct rpc_call *call, const struct stream *stream, uint64_t revision,
                        size_t count)
{
    Gimbal__StreamRecord *records = xcalloc(count, sizeof *records);
    Gimbal__StreamRecord **pointers = xcalloc(count, sizeof(Gimbal__StreamRecord *));
    for (size_t i = 0; i < count; i++) {
        const struct stream_record *record = stream_get(stream, revision + 1 + i);
        gimbal__stream_record__init(&records[i]);
        records[i].revision = revision + 1 + i;
        records[i].data.data = record->data;
        records[i].data.len = record->size;
        pointers[i] = &records[i];
    }
    Gimbal__StreamBatch batch = GIMBAL__STREAM_BATCH__INIT;
    batch.term = stream_term(stream);
    batch.records = pointers;
    batch.n_records = count;
    rpc_call_reply(call, &batch.base);
    free(pointers);
    free(records);
}

void rpc_call_reply_stream(struct rpc_call *call, const struct stream *stream, const char *name)
{
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    assert(poll->base.descriptor == &gimbal__stream_poll__descriptor);
    struct error err;
    size_t count;
    int rc = stream_after(stream, poll->term, poll->revision, BATCH_BYTES_MAX, &count, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else if (count == 0)
        rpc_call_park(call, name, 0);
    else
        reply_batch(call, stream, poll->revision, count);
}
