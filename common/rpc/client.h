/* client.h - the calling side: every call has a deadline, and ends exactly once.
 *
 * A call is started and its callback runs later, in rpc_client_poll, on the thread that polls;
 * or it is made with rpc_client_call, which waits. Calls that may be sent twice are tried again
 * while their deadline lasts, with growing and jittered pauses; any other call carries an
 * idempotency key and is sent once: who wants to repeat it repeats it with its key.
 *
 * Say Hello first: it tells the term that every later call must carry, and the port for held
 * calls. When a call fails with FAILED_PRECONDITION because the term has ended, say it again.
 * Connections are made and made again in the background. All functions are for one thread. */
#ifndef COMMON_RPC_CLIENT_H
#define COMMON_RPC_CLIENT_H

#include "common/base/error.h"
#include "common/rpc/method.h"
#include "common/rpc/status.h"
#include "common/rpc/tls.h"

#include <stdbool.h>
#include <stdint.h>

struct rpc_client;
struct rpc_pending;

/* Which coordinator is known: its cluster, and the newest of its starts. Zeros: none yet. */
struct rpc_fence {
    uint64_t cluster, term, instance;
};

struct rpc_client_options {
    const struct rpc_service *service; /* lent for the client's life */
    const char *address;               /* tcp://HOST:PORT, or tls+tcp://HOST:PORT */
    const struct rpc_tls *tls;         /* NULL where the address is without TLS */
    unsigned role;                     /* with TLS: whose port above that of the address to call */
    const char *caller;                /* name of the node or user */
    const char *credential;            /* NULL where none is needed */
    struct rpc_fence fence;            /* (optional) older ones and others are refused */
    bool fail_fast;                    /* open fails at once where nobody listens */
    uint32_t patience_ms; /* ... and where nobody speaks, after so long; 0: after 10 s */
};

/* How a call went; all of it lent to the callback. */
struct rpc_result {
    enum rpc_status status;
    const char *text;  /* the sentence, unless RPC_OK */
    const void *reply; /* of the method's output type if RPC_OK, else NULL */
};

typedef void (*rpc_done_cb)(void *data, const struct rpc_result *result);

struct rpc_call_options {
    uint32_t deadline_ms;        /* > 0 */
    uint32_t delay_ms;           /* wait so long before the call starts */
    bool once;                   /* do not try again, even where that is allowed */
    const char *idempotency_key; /* NULL: a new one, where the method wants one */
    uint64_t trace_id;
};

/* *out is yours. -EINVAL and -EACCES for the address and what goes with it; with fail_fast also
 * -ECONNREFUSED, and -EACCES where one side does not believe the other's certificate. */
int rpc_client_open(const struct rpc_client_options *options, struct rpc_client **out,
                    struct error *err);
/* Pending calls end without their callbacks. Accepts NULL. */
void rpc_client_close(struct rpc_client *client);

/* Start a call; request is packed here and stays yours. The result is lent until the callback
 * has run or the call is cancelled. */
struct rpc_pending *rpc_client_start(struct rpc_client *client, unsigned method,
                                     const ProtobufCMessage *request,
                                     const struct rpc_call_options *options, rpc_done_cb done,
                                     void *data);
/* Forget the call; its callback does not run. Waits for nothing but our own threads. */
void rpc_pending_cancel(struct rpc_pending *pending);

/* Readable when rpc_client_poll has callbacks to run. */
int rpc_client_fd(const struct rpc_client *client);
/* Wait for at most timeout_ms (-1: for ever) for calls to end, and run their callbacks; returns
 * how many. */
size_t rpc_client_poll(struct rpc_client *client, int timeout_ms);

/* Call and wait for the end; callbacks of other calls do not run meanwhile. On RPC_OK *reply is
 * yours, to be given to message_free; else err has the sentence. */
enum rpc_status rpc_client_call(struct rpc_client *client, unsigned method,
                                const ProtobufCMessage *request,
                                const struct rpc_call_options *options, ProtobufCMessage **reply,
                                struct error *err);

/* What the last Hello told, to be kept where it survives; before it what was known. */
struct rpc_fence rpc_client_fence(const struct rpc_client *client);
uint64_t rpc_client_term(const struct rpc_client *client);
const struct rpc_service *rpc_client_service(const struct rpc_client *client);
/* Random number of this client, in every call it makes. */
uint64_t rpc_client_id(const struct rpc_client *client);

#endif
