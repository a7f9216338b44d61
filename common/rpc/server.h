/* server.h - the answering side: calls come in on NNG's threads and are handled on yours.
 *
 * What arrives waits in a queue until rpc_server_poll runs its handler, so that everything behind
 * a server may be single-threaded. A handler ends in one of three ways:
 *
 *   - it answers, with rpc_call_reply or rpc_call_fail, and does not touch the call, or what
 *     the call lent it, again;
 *   - it parks the call under a stream's name (rpc_call_park): the handler runs again when that
 *     stream is woken, and if it never is, the call is answered empty;
 *   - it returns and keeps the pointer, and answers later. The call lives until it is answered
 *     or the server destroyed, even if the caller has gone.
 *
 * Each listener has two sockets. One takes unary calls and client-streams; the other, one port
 * above, takes held calls, so that a thousand parked ones never keep a unary call waiting.
 * All functions are for one thread.
 *
 * What callers that nobody vouches for may cost is bounded. A frame is at most ENVELOPE_BYTES_MAX
 * and the largest request of the service; a larger one closes its connection before a byte of it
 * is kept. Each connection has one frame that is being received, and 32 of all connections
 * of a socket together wait for their turn. One call at a time is decoded: the envelope into
 * twice its frame, the request into message_quota() of at most what its method takes; both live
 * until the call is answered. For the Coordinator that is 4 MiB a connection, 128 MiB of frames
 * that wait at each socket, 136 MiB for the call that is decoded, and at most 2.1 MiB for one that
 * is parked. */
#ifndef COMMON_RPC_SERVER_H
#define COMMON_RPC_SERVER_H

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/rpc/method.h"
#include "common/rpc/status.h"
#include "common/rpc/tls.h"
#include "proto/envelope.pb-c.h"

#include <stdint.h>

struct rpc_server;
struct rpc_call;
struct stream;

typedef void (*rpc_handler_cb)(struct rpc_call *call, void *data);
/* (optional) Is this caller who it says it is? Asked once the frame is read, and version, method
 * and role are right; not where the method is open to strangers. The request is not read yet.
 * -EKEYREJECTED or -EACCES, with the reason. */
typedef int (*rpc_admit_cb)(void *data, unsigned roles, const Gimbal__Envelope *envelope,
                            struct error *err);
/* (optional) A call of this caller has passed all checks, and its handler runs next. A parked call
 * that is woken is not heard again. */
typedef void (*rpc_heard_cb)(void *data, unsigned roles, const Gimbal__Envelope *envelope);
/* (optional) The last connection of a process that held calls here has closed: it died, or lost all
 * its ways and will be back. */
typedef void (*rpc_gone_cb)(void *data, uint64_t client);

struct rpc_server_options {
    const struct rpc_service *service; /* lent for the server's life */
    uint64_t term;                     /* of this start, > 0 */
    uint64_t instance;                 /* random number of this start */
    uint64_t cluster;                  /* random number of the cluster; 0: it has none */
    const char *release;               /* told in Hello; lent for the server's life */
    bool gather;                       /* answers wait for rpc_server_release */
    uint32_t hold_ms;                  /* 0: 20 s */
    size_t held_count_max;             /* 0: 16384 */
    rpc_admit_cb admit_cb;
    rpc_heard_cb heard_cb;
    rpc_gone_cb gone_cb;
    void *data;                    /* given to all three */
    uint64_t (*clock_cb)(void);    /* NULL: rpc_clock_ms; called on NNG's threads too */
    uint64_t (*calendar_cb)(void); /* milliseconds of Unix, told in Hello; NULL: not told */
};

struct rpc_counters {
    uint64_t arrived;
    uint64_t answered[RPC_STATUS_COUNT];
    uint64_t malformed; /* frames that were no request */
    uint64_t wrong_version;
    uint64_t stale;         /* of another term */
    uint64_t expired;       /* arrived, but too late to be handled */
    uint64_t held_empty;    /* parked until nobody wanted to wait longer */
    uint64_t held_replaced; /* by a newer call of the same client */
    uint64_t held_reaped;   /* their caller's connection closed */
};

/* *out is yours. Fails only for want of memory or descriptors. */
int rpc_server_create(const struct rpc_server_options *options, struct rpc_server **out,
                      struct error *err);
/* Calls that were not answered see their connection close. Accepts NULL. */
void rpc_server_destroy(struct rpc_server *server);

/* Answer the method of that number with handler. A method without one is UNIMPLEMENTED. */
void rpc_server_handle(struct rpc_server *server, unsigned method, rpc_handler_cb handler,
                       void *data);
/* The handler for Hello: versions, term, and the port for held calls. */
void rpc_hello(struct rpc_call *call, void *data);

/* Let callers of these roles in at tcp://HOST:PORT, and at PORT + 1 for held calls; port 0
 * takes two free ones. -EADDRINUSE, -EINVAL and -EACCES say what to do instead. */
int rpc_server_listen(struct rpc_server *server, unsigned roles, const char *address,
                      struct error *err);
/* The same at tls+tcp://HOST:PORT: only for who shows a certificate that tls->authority signed. */
int rpc_server_listen_tls(struct rpc_server *server, unsigned roles, const char *address,
                          const struct rpc_tls *tls, struct error *err);
/* Close all listeners; connections that came in by them go. */
void rpc_server_unlisten(struct rpc_server *server);
/* The address of the index-th listener, with its real port; lent. NULL past the last. */
const char *rpc_server_address(const struct rpc_server *server, size_t index);

/* Readable when rpc_server_poll has something to do, for a poll loop of your own. */
int rpc_server_fd(const struct rpc_server *server);
/* Milliseconds until a parked call must be answered; -1 when none is. */
int rpc_server_timeout_ms(const struct rpc_server *server);
/* Wait for at most timeout_ms (-1: for ever) and run what there is to run; returns how many
 * calls were handled. */
size_t rpc_server_poll(struct rpc_server *server, int timeout_ms);

/* With `gather`: send the answers that were given since the last of these two calls, or tell their
 * callers UNAVAILABLE and these words instead. So what many calls have changed can be made
 * durable at once, before anybody hears of any of it. */
void rpc_server_release(struct rpc_server *server);
void rpc_server_withdraw(struct rpc_server *server, const char *words);

/* Run the handlers of the calls parked under this name again, now. */
void rpc_server_wake(struct rpc_server *server, const char *stream);
/* Answer PERMISSION_DENIED to what callers of that name, by listeners of these roles, have
 * parked. */
void rpc_server_dismiss(struct rpc_server *server, unsigned roles, const char *caller,
                        const char *words);
const struct rpc_counters *rpc_server_counters(const struct rpc_server *server);
/* How long the method's calls took here, in nanoseconds: from their arrival, over waiting for their
 * turn, until their handler returned. Calls that were refused before are not in it. */
const struct histogram *rpc_server_handling(const struct rpc_server *server, unsigned method);
/* Connections that listeners with TLS have refused, at least: those that broke off their handshake
 * while NNG was counting others are not among them. A few microseconds per socket of the process.
 */
uint64_t rpc_server_handshakes_refused(const struct rpc_server *server);
/* Hang up on those that were accepted so long ago, or longer, and have not finished their
 * handshake; returns how many. To be called now and then where there is TLS: NNG never does. */
size_t rpc_server_end_handshakes(struct rpc_server *server, uint64_t older_ms);
/* How many calls are parked. */
size_t rpc_server_held_count(const struct rpc_server *server);

/* The call's request, of the method's input type; lent until it is answered. */
const void *rpc_call_request(const struct rpc_call *call);
/* Who calls: client, caller, idempotency key, trace id; lent until the call is answered. */
const Gimbal__Envelope *rpc_call_envelope(const struct rpc_call *call);
/* The roles of the listener that the call came in by. */
unsigned rpc_call_roles(const struct rpc_call *call);

/* Answer; reply is of the method's output type and stays yours. */
void rpc_call_reply(struct rpc_call *call, const ProtobufCMessage *reply);
void rpc_call_fail(struct rpc_call *call, enum rpc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same from what a function of ours returned. */
void rpc_call_fail_errno(struct rpc_call *call, int rc, const struct error *err);
/* Park a held call. A client has one call per (stream, lane): its newer one replaces the older,
 * which is ABORTED. lane is 0, or tells the ranks apart that share a client. */
void rpc_call_park(struct rpc_call *call, const char *stream, uint64_t lane);
/* Answer a StreamPoll with what stream has after it, or park it under name until there is
 * something: after every stream_append follows an rpc_server_wake(name). */
void rpc_call_reply_stream(struct rpc_call *call, const struct stream *stream, const char *name);

#endif
