/* server.h - the answering side of an RPC: calls arrive on NNG's threads and are handled on the
 * thread that polls.
 *
 * What arrives waits in a queue until rpc_server_poll() runs its handler, so everything behind a
 * server can be single-threaded. A handler ends in one of three ways:
 *
 *   - it answers, with rpc_call_reply() or rpc_call_fail(), and touches neither the call nor
 *     anything it got from the call again;
 *   - it parks the call under the name of a stream, with rpc_call_park(); the handler runs again
 *     when that stream is woken, and if it never is, the call is answered empty;
 *   - it keeps the pointer, returns, and answers later. The call lives until it is answered or the
 *     server destroyed, even if the caller has gone.
 *
 * Each listener has two sockets. One takes unary calls and client-streams; the other, one port
 * above, takes held calls, so that a thousand parked ones never keep a unary call waiting.
 *
 * All functions of a server belong to one thread.
 *
 * The memory that untrusted callers can take is bounded. A frame is at most ENVELOPE_BYTES_MAX plus
 * the largest request of the service; a larger one closes its connection before a byte of it is
 * kept. A connection receives one frame at a time, and per socket 32 frames wait for their turn.
 * One call at a time is decoded: the envelope into twice the size of its frame, the request into
 * message_quota() of at most what its method accepts; both live until the call is answered. For the
 * Coordinator this is 4 MiB per connection, 128 MiB of waiting frames per socket, 136 MiB for the
 * call being decoded, and at most 2.1 MiB for one that is parked. */
#ifndef COMMON_RPC_SERVER_H
#define COMMON_RPC_SERVER_H

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/rpc/protocol.h"
#include "common/rpc/transport.h"
#include "proto/envelope.pb-c.h"

#include <stdint.h>

struct rpc_server;
struct rpc_call;
struct stream;

typedef void (*rpc_handler_cb)(struct rpc_call *call, void *data);
/* (optional) Authenticate a caller. Called after frame, version, method and role were checked and
 * before the request is read; not for methods that are open to strangers. Returns 0, or
 * -EKEYREJECTED or -EACCES with the reason. */
typedef int (*rpc_admit_cb)(void *data, unsigned roles, const Gimbal__Envelope *envelope,
                            struct error *err);
/* (optional) A call has passed all checks and its handler runs next. Not called again when a parked
 * call is woken. */
typedef void (*rpc_heard_cb)(void *data, unsigned roles, const Gimbal__Envelope *envelope);
/* (optional) The last connection of a client that had made held calls, answered at once or parked,
 * has closed: it has died, or lost its connections and will be back. */
typedef void (*rpc_gone_cb)(void *data, uint64_t client);

struct rpc_server_options {
    const struct rpc_service *service; /* borrowed for the server's life */
    uint64_t term;                     /* of this start, > 0 */
    uint64_t instance;                 /* random number of this start */
    uint64_t cluster;                  /* random number of the cluster; 0: it has none */
    const char *release;               /* returned by Hello; borrowed for the server's life */
    bool gather;                       /* hold answers back until rpc_server_release() */
    uint32_t hold_ms;                  /* how long calls stay parked; 0: 20 s */
    size_t held_count_max;             /* how many calls may be parked; 0: 16384 */
    rpc_admit_cb admit_cb;
    rpc_heard_cb heard_cb;
    rpc_gone_cb gone_cb;
    void *data;                    /* passed to all three */
    uint64_t (*clock_cb)(void);    /* NULL: clock_ms(); also called on NNG's threads */
    uint64_t (*calendar_cb)(void); /* Unix time in ms, returned by Hello; NULL: not returned */
};

struct rpc_counters {
    uint64_t arrived;
    uint64_t answered[RPC_STATUS_COUNT];
    uint64_t malformed; /* frames that were not a request */
    uint64_t wrong_version;
    uint64_t stale;         /* calls of another term */
    uint64_t expired;       /* calls whose deadline had passed before they were handled */
    uint64_t held_empty;    /* parked calls that were answered empty */
    uint64_t held_replaced; /* parked calls replaced by a newer one of the same client */
    uint64_t held_reaped;   /* parked calls whose connection closed */
};

/* Create a server, owned by the caller. Fails only for lack of memory or descriptors. */
int rpc_server_create(const struct rpc_server_options *options, struct rpc_server **out,
                      struct error *err);
/* Callers without an answer see their connection close. Accepts NULL. */
void rpc_server_destroy(struct rpc_server *server);

/* Set the handler of a method, by its number. A method without one is answered UNIMPLEMENTED. */
void rpc_server_handle(struct rpc_server *server, unsigned method, rpc_handler_cb handler,
                       void *data);
/* The handler for Hello: returns versions, the term, and the port for held calls. */
void rpc_hello(struct rpc_call *call, void *data);

/* Let callers in, with these roles, at tcp://HOST:PORT, and at PORT + 1 for held calls; port 0
 * takes two free ones. -EADDRINUSE, -EINVAL or -EACCES, with a text that says what to do instead.
 */
int rpc_server_listen(struct rpc_server *server, unsigned roles, const char *address,
                      struct error *err);
/* The same at tls+tcp://HOST:PORT. Callers have to show a certificate signed by tls->authority. */
int rpc_server_listen_tls(struct rpc_server *server, unsigned roles, const char *address,
                          const struct rpc_tls *tls, struct error *err);
/* Close all listeners and the connections that they accepted. */
void rpc_server_unlisten(struct rpc_server *server);
/* The address of a listener, with its real port, borrowed from the server; NULL past the last. */
const char *rpc_server_address(const struct rpc_server *server, size_t index);

/* A descriptor that is readable when rpc_server_poll() has something to do. */
int rpc_server_fd(const struct rpc_server *server);
/* Milliseconds until a parked call must be answered; -1 when none is parked. */
int rpc_server_timeout_ms(const struct rpc_server *server);
/* Wait at most timeout_ms (-1: without limit) and handle what has arrived. Returns how many calls
 * were handled. */
size_t rpc_server_poll(struct rpc_server *server, int timeout_ms);

/* With options.gather: send the answers given since the last release or withdrawal. So the changes
 * of many calls can be made durable together before any caller hears of them. */
void rpc_server_release(struct rpc_server *server);
/* Answer those calls UNAVAILABLE with these words instead. */
void rpc_server_withdraw(struct rpc_server *server, const char *words);

/* Run the handlers of the calls parked under this name again, now. */
void rpc_server_wake(struct rpc_server *server, const char *stream);
/* Answer PERMISSION_DENIED, with these words, to all parked calls of the caller of this name that
 * came in by listeners of these roles. */
void rpc_server_dismiss(struct rpc_server *server, unsigned roles, const char *caller,
                        const char *words);
const struct rpc_counters *rpc_server_counters(const struct rpc_server *server);
/* How long calls of a method took, in nanoseconds: from arrival, including the wait for their turn,
 * until the handler returned. Calls that were refused before their handler are not counted. */
const struct histogram *rpc_server_handling(const struct rpc_server *server, unsigned method);
/* How many connections TLS listeners have refused. A lower bound: handshakes broken off while NNG
 * was counting others are missing. Takes a few microseconds per socket of the process. */
uint64_t rpc_server_handshakes_refused(const struct rpc_server *server);
/* Hang up on connections that were accepted at least older_ms ago and have not finished their TLS
 * handshake. Returns how many. To be called regularly with TLS, because NNG never does it. */
size_t rpc_server_end_handshakes(struct rpc_server *server, uint64_t older_ms);
/* How many calls are parked. */
size_t rpc_server_held_count(const struct rpc_server *server);

/* The request, of the method's input type. Valid until the call is answered. */
const void *rpc_call_request(const struct rpc_call *call);
/* Who calls: client, caller, idempotency key, trace id. Valid until the call is answered. */
const Gimbal__Envelope *rpc_call_envelope(const struct rpc_call *call);
/* The roles of the listener by which the call came in. */
unsigned rpc_call_roles(const struct rpc_call *call);

/* Answer a call. The reply is of the method's output type and still belongs to the caller. */
void rpc_call_reply(struct rpc_call *call, const ProtobufCMessage *reply);
/* Answer a call with an error. */
void rpc_call_fail(struct rpc_call *call, enum rpc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a negative errno and its text. */
void rpc_call_fail_errno(struct rpc_call *call, int rc, const struct error *err);
/* Park a held call. A client has one parked call per (stream, lane); a newer one replaces the
 * older, which is answered ABORTED. `lane` is 0, or tells ranks apart that share a client. */
void rpc_call_park(struct rpc_call *call, const char *stream, uint64_t lane);
/* Answer a StreamPoll with the records that follow what it has, or park it under `name` until there
 * are some. Every stream_append() has to be followed by rpc_server_wake(name). */
void rpc_call_reply_stream(struct rpc_call *call, const struct stream *stream, const char *name);

#endif
