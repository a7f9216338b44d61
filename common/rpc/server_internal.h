/* server_internal.h - what the three files of a server share: call.c, one call from its arrival to
 * its answer; held.c, calls that wait; server.c, the rest.
 *
 * A call object owns an NNG context and is reused for one call after another. At any time it
 * belongs either to NNG's threads (receiving, sending) or to the thread that polls the server
 * (queued, running, parked, answered). NNG hands it over through the queue of arrivals, the polling
 * thread hands it back by starting its aio. */
#ifndef COMMON_RPC_SERVER_INTERNAL_H
#define COMMON_RPC_SERVER_INTERNAL_H

#include "common/rpc/server.h"

#include <nng/nng.h>
#include <pthread.h>
#include <stdbool.h>

enum call_state {
    CALL_RECEIVING, /* waits for a request */
    CALL_SENDING,   /* its answer is being sent */
    CALL_QUEUED,    /* has arrived and waits for the polling thread */
    CALL_RUNNING,   /* is being handled */
    CALL_PARKED,    /* is held, see rpc_call_park() */
    CALL_ANSWERED,  /* its answer waits for rpc_server_release() */
};

struct rpc_call {
    struct rpc_server *server;
    struct endpoint *endpoint;
    nng_ctx ctx;
    nng_aio *aio;
    enum call_state state;
    struct rpc_call *next; /* in the list of arrived, answered or woken calls */

    nng_msg *frame;
    nng_pipe pipe;
    uint64_t arrived_ms; /* by options.clock_cb, for the deadline */
    uint64_t arrived_ns; /* by clock_ns(), for the histogram */
    const struct listener *listener;
    Gimbal__Envelope *envelope;
    int method; /* -1: not known yet */
    ProtobufCMessage *request;
    bool kept;       /* counted in endpoint.kept_count */
    nng_msg *answer; /* while CALL_ANSWERED */

    /* While CALL_PARKED. */
    char *stream;
    uint64_t stream_hash;
    uint64_t lane;
    uint64_t until_ms; /* when it is answered empty */
};

/* One of the server's two sockets, and its calls. */
struct endpoint {
    struct rpc_server *server;
    nng_socket socket;
    bool held; /* the socket for held calls */
    struct rpc_call **calls;
    size_t call_count, call_capacity;
    size_t kept_count; /* calls handled but not answered yet, which therefore cannot receive */
};

struct listener {
    unsigned roles;      /* of those who come in by it */
    nng_listener nng[2]; /* for unary and for held calls */
    uint16_t held_port;
    char address[96]; /* with its real port */
};

/* A connection, and the client at its other end once it has called. */
struct peer {
    int pipe;
    uint64_t client; /* 0: it has not called yet */
    bool holds;      /* a held call came by it, or by an earlier connection of the client */
};

struct handler {
    rpc_handler_cb cb;
    void *data;
};

struct rpc_server {
    struct rpc_server_options options;
    struct handler *handlers; /* by method */
    struct endpoint unary, held;
    struct listener **listeners;
    size_t listener_count, listener_capacity;
    struct rpc_counters counters;
    struct rpc_call *answered, **answered_end; /* answers gathered for release, in order */
    struct histogram *handling;                /* by method, in nanoseconds */

    /* Parked calls in no particular order; none is due before held_next_ms. */
    struct rpc_call **parked;
    size_t parked_count, parked_capacity;
    uint64_t held_next_ms;

    int fd; /* an eventfd, signalled for every arrival and every closed connection */
    pthread_mutex_t lock;
    /* Protected by lock, which is never held while calling NNG. */
    struct rpc_call *arrived, **arrived_end;
    struct peer *peers, *gone;
    size_t peer_count, peer_capacity, gone_count, gone_capacity;
};

/* call.c */

/* Open calls until enough of them are receiving. -ENOMEM when NNG has no memory. */
int call_open_spares(struct endpoint *endpoint, struct error *err);
/* Stop and free a call. Its socket must be closed. */
void call_destroy(struct rpc_call *call);
/* Run the handler of a call that has passed the checks. */
void call_run(struct rpc_call *call);
/* Send the answer, or gather it for release; then the call receives again. payload may be NULL. */
void call_answer(struct rpc_call *call, enum rpc_status status, const char *text,
                 const ProtobufCMessage *payload);
/* Wake the polling thread. On any thread. */
void server_raise(struct rpc_server *server);

/* held.c */

/* End the calls that are parked on a connection that has closed. */
void held_reap(struct rpc_server *server, int pipe);
/* Answer the parked calls that are due. */
void held_expire(struct rpc_server *server, uint64_t now_ms);

/* A callback for NNG, which reports that a connection was made or has closed. */
void peers_changed(nng_pipe pipe, nng_pipe_ev event, void *server);
/* Note whose connection this is, and if it is one for held calls; false when it has closed. */
bool peers_claim(struct rpc_server *server, nng_pipe pipe, uint64_t client, bool holds);
/* The connection has closed, and so have the `behind` ones that follow it in the array. Is its
 * client gone? A client that never made a held call never is; one that has another connection goes
 * with that one. */
bool peers_end(struct rpc_server *server, struct peer *closed, size_t behind);

#endif
