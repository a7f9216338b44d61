/* client.h - the calling side of an RPC: every call has a deadline and ends exactly once.
 *
 * A call is either started with rpc_client_start(), and its callback runs later in
 * rpc_client_poll(), or made with rpc_client_call(), which waits. A method that is idempotent is
 * retried until the deadline, with growing and jittered pauses. Any other call carries an
 * idempotency key and is sent once; to repeat it, make it again with the same key.
 *
 * Call Hello first: it returns the term that every later call must carry, and the port for held
 * calls. When a call fails with FAILED_PRECONDITION because the term has ended, call Hello again.
 * Connections are made and remade in the background.
 *
 * All functions of a client, and its callbacks, belong to one thread. */
#ifndef COMMON_RPC_CLIENT_H
#define COMMON_RPC_CLIENT_H

#include "common/base/error.h"
#include "common/rpc/protocol.h"
#include "common/rpc/transport.h"

#include <stdbool.h>
#include <stdint.h>

struct rpc_client;
struct rpc_pending;

/* The coordinator that a client knows: its cluster, and the newest start of it. Coordinators of
 * another cluster and earlier starts are refused. All zeroes: none is known yet. */
struct rpc_fence {
    uint64_t cluster, term, instance;
};

/* A connection that is cut or slow for a time, for drills. Nothing is done to the connection
 * itself: its client holds what it would send and what has arrived. So nothing is lost or changed
 * but by the deadlines of the calls, as on a network that is out of order. All zeroes: none. */
struct rpc_hindrance {
    uint32_t delay_ms; /* every message is late by this; 0: none passes before until_ms */
    uint64_t until_ms; /* of clock_ms() */
};

struct rpc_client_options {
    const struct rpc_service *service; /* borrowed for the client's life */
    const char *address;               /* tcp://HOST:PORT, or tls+tcp://HOST:PORT */
    const struct rpc_tls *tls;         /* NULL if the address is without TLS */
    unsigned role;                     /* with TLS: the role whose port to call, see address.h */
    const char *caller;                /* name of the node or user */
    const char *credential;            /* NULL where none is needed */
    struct rpc_fence fence;            /* (optional) older ones and others are refused */
    bool fail_fast;                    /* open fails at once where nobody listens */
    uint32_t patience_ms;           /* ... and where nobody speaks, after so long; 0: after 10 s */
    struct rpc_hindrance hindrance; /* (optional) see rpc_client_hinder */
};

/* How a call ended. Valid during the callback. */
struct rpc_result {
    enum rpc_status status;
    const char *text;  /* the error text, unless RPC_OK */
    const void *reply; /* of the method's output type if RPC_OK, else NULL */
};

typedef void (*rpc_done_cb)(void *data, const struct rpc_result *result);

struct rpc_call_options {
    uint32_t deadline_ms;        /* > 0 */
    uint32_t delay_ms;           /* wait this long before the first attempt */
    bool once;                   /* do not retry, even if the method allows it */
    const char *idempotency_key; /* NULL: make a new one if the method needs one */
    uint64_t trace_id;
};

/* Open a client, which the caller closes. -EINVAL or -EACCES when the address, or TLS and address
 * together, are not valid; with fail_fast also -ECONNREFUSED, and -EACCES when one side does not
 * trust the other's certificate. */
int rpc_client_open(const struct rpc_client_options *options, struct rpc_client **out,
                    struct error *err);
/* Pending calls end without their callbacks. Accepts NULL. */
void rpc_client_close(struct rpc_client *client);

/* Start a call. The request is packed here and still belongs to the caller. The handle is valid
 * until the callback has run or the call is cancelled. */
struct rpc_pending *rpc_client_start(struct rpc_client *client, unsigned method,
                                     const ProtobufCMessage *request,
                                     const struct rpc_call_options *options, rpc_done_cb done,
                                     void *data);
/* Cancel a call; its callback will not run. Does not wait for the network. */
void rpc_pending_cancel(struct rpc_pending *pending);

/* A descriptor that is readable when rpc_client_poll() has callbacks to run. */
int rpc_client_fd(const struct rpc_client *client);
/* Wait at most timeout_ms (-1: without limit) for calls to end, and run their callbacks. Returns
 * how many ran. */
size_t rpc_client_poll(struct rpc_client *client, int timeout_ms);

/* Make a call and wait until it ends. Callbacks of other calls do not run meanwhile. On RPC_OK the
 * caller owns *reply and frees it with message_free(); otherwise err has the text. */
enum rpc_status rpc_client_call(struct rpc_client *client, unsigned method,
                                const ProtobufCMessage *request,
                                const struct rpc_call_options *options, ProtobufCMessage **reply,
                                struct error *err);

/* Hold what is sent and what arrives from now on, in place of any earlier hindrance. */
void rpc_client_hinder(struct rpc_client *client, const struct rpc_hindrance *hindrance);
/* For how long to hold a message that is about to be sent, or has arrived; 0: let it pass. */
uint32_t rpc_hindrance_ms(const struct rpc_hindrance *hindrance, uint64_t now_ms);

/* The coordinator as the last Hello described it, to be stored where it survives the process;
 * before the first Hello, the options' fence. */
struct rpc_fence rpc_client_fence(const struct rpc_client *client);
uint64_t rpc_client_term(const struct rpc_client *client);
const struct rpc_service *rpc_client_service(const struct rpc_client *client);
/* The random number that identifies this client in every call it makes. */
uint64_t rpc_client_id(const struct rpc_client *client);

#define RPC_BACKOFF_MS_MIN 50
#define RPC_BACKOFF_MS_MAX 2000

/* The pause after failure number `attempt`, counted from 0, in milliseconds. It doubles from
 * RPC_BACKOFF_MS_MIN up to RPC_BACKOFF_MS_MAX. `uniform`, a random number in [0, 1), takes up to
 * half of it away, so that callers that failed together do not come back together. */
uint32_t rpc_backoff_ms(unsigned attempt, double uniform);

#endif
