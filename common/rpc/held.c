/* held.c - parked calls: at most one per (client, stream, lane), until it is woken, replaced,
 * reaped or due.
 *
 * They are kept in an array that is searched linearly: a thousand workers park some fifty calls a
 * second, and comparing a thousand hashes takes microseconds. */
#include "common/rpc/call.h"

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool on_stream(const struct rpc_call *call, uint64_t hash, const char *stream)
{
    return call->stream_hash == hash && strcmp(call->stream, stream) == 0;
}

/* Removes the call at this index from the array; it is running again. */
static struct rpc_call *take(struct rpc_server *server, size_t index)
{
    struct rpc_call *call = server->parked[index];
    server->parked[index] = server->parked[--server->parked_count];
    call->state = CALL_RUNNING;
    return call;
}

static void replace_older(const struct rpc_call *newer)
{
    struct rpc_server *server = newer->server;
    for (size_t i = 0; i < server->parked_count; i++) {
        const struct rpc_call *call = server->parked[i];
        if (call->lane == newer->lane && call->envelope->client == newer->envelope->client &&
            on_stream(call, newer->stream_hash, newer->stream)) {
            server->counters.held_replaced++;
            rpc_call_fail(take(server, i), RPC_ABORTED,
                          "a newer call of this client waits on '%s' now", newer->stream);
            return;
        }
    }
}

/* When to answer empty: within the server's hold_ms, and early enough to meet the caller's
 * deadline. */
static uint64_t hold_until(const struct rpc_call *call)
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
    call->until_ms = hold_until(call);
    replace_older(call);
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
        struct rpc_call *call = take(server, i);
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
        rpc_call_fail(take(server, i), RPC_CANCELLED, "the connection has closed");
    }
}

void rpc_server_dismiss(struct rpc_server *server, unsigned roles, const char *caller,
                        const char *words)
{
    for (size_t i = 0; i < server->parked_count;) {
        const struct rpc_call *call = server->parked[i];
        if (call->listener->roles == roles && strcmp(call->envelope->caller, caller) == 0)
            rpc_call_fail(take(server, i), RPC_PERMISSION_DENIED, "%s", words);
        else
            i++;
    }
}

/* Answers "nothing came": the method's reply with all fields at their defaults. */
static void answer_empty(struct rpc_call *call)
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
            answer_empty(take(server, i));
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
