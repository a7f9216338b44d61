/* pending.h - internal to the client: one call from its start to its end.
 *
 * Until it is done a call belongs to NNG's threads, which run its steps one after another; then it
 * belongs to the client's thread. */
#ifndef COMMON_RPC_PENDING_H
#define COMMON_RPC_PENDING_H

#include "common/rpc/address.h"
#include "common/rpc/client.h"
#include "common/rpc/connection.h"
#include "proto/envelope.pb-c.h"

#include <nng/nng.h>
#include <pthread.h>

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

/* Create a call and begin its first step; never NULL. Arguments as rpc_client_start(). */
struct rpc_pending *pending_start(struct rpc_client *client, unsigned method,
                                  const ProtobufCMessage *request,
                                  const struct rpc_call_options *options, rpc_done_cb done,
                                  void *data);
/* Stop a call, whatever it is doing, and free it. */
void pending_destroy(struct rpc_pending *pending);
/* The status of a call that is done; on RPC_OK the caller owns *reply. */
enum rpc_status pending_settle(struct rpc_pending *pending, ProtobufCMessage **reply);

#endif
