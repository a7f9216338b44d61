/* call.h - inside the server: one call from its arrival to its answer.
 *
 * A call owns an NNG context and is used again and again. At any time it belongs either to NNG
 * (receiving, sending) or to the thread that polls the server (queued, running, parked); it is
 * handed over through the queue of arrivals one way and by starting its aio the other. */
#ifndef COMMON_RPC_CALL_H
#define COMMON_RPC_CALL_H

#include "common/rpc/server.h"

#include <nng/nng.h>
#include <pthread.h>
#include <stdbool.h>

enum call_state {
    CALL_RECEIVING,
    CALL_SENDING,
    CALL_QUEUED,
    CALL_RUNNING,
    CALL_PARKED,
    CALL_ANSWERED, /* the answer waits to be released */
};

struct rpc_call {
    struct rpc_server *server;
    struct endpoint *endpoint;
    nng_ctx ctx;
    nng_aio *aio;
    enum call_state state;
    struct rpc_call *next; /* of those that arrived, that wait for release, or that are woken */

    nng_msg *frame;
    nng_pipe pipe;
    uint64_t arrived_ms; /* by the options' clock */
    uint64_t arrived_ns; /* by rpc_clock_ns */
    const struct listener *listener;
    Gimbal__Envelope *envelope;
    int method; /* -1 while not known */
    ProtobufCMessage *request;
    bool kept;       /* its handler has returned without an answer */
    nng_msg *answer; /* while answered */

    char *stream; /* while parked */
    uint64_t stream_hash;
    uint64_t lane;
    uint64_t until_ms;
};

/* One of the two sockets, and its calls. */
struct endpoint {
    struct rpc_server *server;
    nng_socket socket;
    bool held;
    struct rpc_call **calls;
    size_t call_count, call_capacity;
    size_t kept_count; /* calls that are not answered yet, and so cannot receive */
};

struct listener {
    unsigned roles;
    nng_listener nng[2]; /* for unary and held calls */
    uint16_t held_port;
    char address[96];
};

/* A connection, and the process at its other end once that has called. */
struct peer {
    int pipe;
    uint64_t client;
    bool holds; /* a call was parked on it, or on one before it that has closed */
};

struct handler {
    rpc_handler_cb cb;
    void *data;
};

struct rpc_server {
    struct rpc_server_options options;
    struct handler *handlers;
    struct endpoint unary, held;
    struct listener **listeners;
    size_t listener_count, listener_capacity;
    struct rpc_counters counters;
    struct rpc_call *answered, **answered_end; /* gathered, in their order */
    struct histogram *handling;                /* of each method, nanoseconds */

    /* Parked calls, in no order; none is due before held_next_ms. */
    struct rpc_call **parked;
    size_t parked_count, parked_capacity;
    uint64_t held_next_ms;

    int fd; /* an eventfd, raised with every arrival and every closed connection */
    pthread_mutex_t lock;
    /* Under lock, which is never held while NNG is called. */
    struct rpc_call *arrived, **arrived_end;
    struct peer *peers, *gone;
    size_t peer_count, peer_capacity, gone_count, gone_capacity;
};

/* call.c: open calls until enough of them are receiving. -ENOMEM where NNG cannot. */
int call_open_spares(struct endpoint *endpoint, struct error *err);
/* Stop and free; the socket must be closed. */
void call_destroy(struct rpc_call *call);
/* Send the answer, or gather it; payload may be NULL. The call then receives again. */
void call_answer(struct rpc_call *call, enum rpc_status status, const char *text,
                 const ProtobufCMessage *payload);

/* dispatch.c: check what arrived and run its handler. */
void call_dispatch(struct rpc_call *call);
/* Run the handler of a call that has passed the checks. */
void call_run(struct rpc_call *call);

/* held.c */
void held_reap(struct rpc_server *server, int pipe);
void held_expire(struct rpc_server *server, uint64_t now_ms);

/* peers.c: connections, as NNG reports them. */
void peers_changed(nng_pipe pipe, nng_pipe_ev event, void *server);
/* Note whose connection this is, and whether a call is parked on it; false when it has closed. */
bool peers_claim(struct rpc_server *server, nng_pipe pipe, uint64_t client, bool holds);
/* It has closed, and so have as many as are behind it: is its client gone with it? One that holds
 * nothing never is, and one that has another connection goes with that. */
bool peers_end(struct rpc_server *server, struct peer *closed, size_t behind);

/* server.c: hand a call to the polling thread, and wake that; on any thread. */
void server_arrived(struct rpc_server *server, struct rpc_call *call);
void server_raise(struct rpc_server *server);

#endif
