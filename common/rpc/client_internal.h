/* client_internal.h - what the three files of a client share: client.c, on the thread of its user,
 * has calls started, cancelled and settled; attempt.c, on NNG's threads, has the steps of each;
 * connection.c has the sockets that they go through. */
#ifndef COMMON_RPC_CLIENT_INTERNAL_H
#define COMMON_RPC_CLIENT_INTERNAL_H

#include "common/base/error.h"
#include "common/rpc/address.h"
#include "common/rpc/client.h"
#include "proto/envelope.pb-c.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One REQ socket, and the connection it maintains.
 *
 * NNG redials when a connection closes, but a peer that is stopped or behind a cut cable never
 * closes it. So the connection is given up when a call times out on it and nothing at all was heard
 * since that call was sent, or since it began waiting to be sent. A server that is slow with one
 * call but answers others keeps its connection. */
struct connection {
    nng_socket socket;
    nng_dialer dialer; /* the current one */
    pthread_mutex_t lock;
    /* Protected by lock. */
    nng_pipe pipe;     /* the latest connection */
    uint64_t heard_ms; /* when something last came in; connecting counts */
};

/* After a failure there is nothing to close. */
int connection_open(struct connection *connection, struct error *err);
void connection_close(struct connection *connection);
/* Connect to address from now on, and to no other; with wait, fail where nobody listens, or not
 * within patience_ms (0: what NNG has), or where one of both does not believe the other (-EACCES).
 * tls is NULL where the address has none. */
int connection_dial(struct connection *connection, const char *address, nng_tls_config *tls,
                    bool wait, uint32_t patience_ms, struct error *err);
/* Something came in; on any thread. */
void connection_heard(struct connection *connection);
/* Note that a call has timed out that was sent, or waited to be sent, at that time. Any thread. */
void connection_suspect(struct connection *connection, uint64_t sent_ms);

/* One call from its start to its end. Until it is done it belongs to NNG's threads, which run its
 * steps one after another; then it belongs to the client's thread. */
enum pending_phase {
    PENDING_WAITING, /* before an attempt */
    PENDING_LEAVING, /* the request is held by a hindrance */
    PENDING_SENDING,
    PENDING_RECEIVING,
    PENDING_ARRIVED, /* the answer is held by a hindrance */
};

struct rpc_pending {
    struct rpc_client *client;
    const struct rpc_method *method;
    unsigned method_index;
    rpc_done_cb done; /* NULL: rpc_client_call() waits for it */
    void *data;
    struct rpc_pending *next, *previous; /* in the list of all calls of the client */
    struct rpc_pending *next_done;       /* in client.finished */
    bool is_done;                        /* protected by the client's lock */

    struct connection *connection;
    uint64_t sent_ms; /* when it was sent; while sending, when that began */
    nng_ctx ctx;
    bool ctx_open;
    nng_aio *aio; /* sends and receives */
    /* Waits. An aio of NNG 1.5.2 that has slept once reports success, and no message, when it later
     * times out while it receives. */
    nng_aio *timer;
    enum pending_phase phase;
    uint64_t call_id;
    uint64_t trace_id;
    char *idempotency_key;
    void *payload;
    size_t payload_size;
    uint32_t deadline_ms;
    uint64_t deadline_at_ms;
    bool may_repeat;
    bool unsendable;  /* cannot be sent: fails with its status after its delay */
    unsigned attempt; /* failures so far */

    enum rpc_status status;
    struct error err;
    Gimbal__Envelope *answer; /* NULL: none came */
};

struct rpc_client {
    const struct rpc_service *service;
    struct rpc_address address;
    char address_text[96];
    char *caller, *credential;
    nng_tls_config *tls; /* NULL: no TLS */
    uint64_t id;
    struct connection unary, held;
    bool unary_open, held_open;
    uint16_t held_port; /* 0 before Hello */
    uint64_t next_call_id;
    struct rpc_pending *calls;

    int fd; /* an eventfd, signalled when a call with a callback is done */
    pthread_mutex_t lock;
    pthread_cond_t done; /* a call without a callback is done */
    /* Protected by lock. */
    struct rpc_fence fence;
    struct rpc_hindrance hindrance;
    struct rpc_pending *finished, **finished_end;
};

/* attempt.c */

/* Allocate the two on which the steps run. Returns an NNG error code. */
int attempt_open(struct rpc_pending *pending);
/* Begin the first attempt after delay_ms; a call that is unsendable just ends after it. From here
 * until it is done the call belongs to NNG's threads. */
void attempt_begin(struct rpc_pending *pending, uint32_t delay_ms);

#endif
