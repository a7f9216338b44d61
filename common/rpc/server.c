/* server.c - sockets and listeners, the checks before a call is believed, and the turn of the
 * polling thread, to which NNG's threads hand over what arrives.
 *
 * A frame comes to its handler through a sequence of checks, each of which may answer the call with
 * an error. Nothing in a call is trusted before it is checked, and what costs memory comes last:
 * frame, version, method, role, identity, deadline, term, size, and only then the request itself.
 */
#include "common/rpc/server.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/nng_fixes.h"
#include "common/rpc/server_internal.h"
#include "common/rpc/transport.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/tls/tls.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HOLD_MS 20000
#define HELD_COUNT_MAX 16384
/* One for each role, and spares. */
#define LISTENERS_MAX 8

static int endpoint_init(struct endpoint *endpoint, struct rpc_server *server, bool held,
                         struct error *err)
{
    size_t bytes_max = ENVELOPE_BYTES_MAX + rpc_service_request_bytes_max(server->options.service);
    int rc = nng_fixes_check(err);
    if (rc < 0)
        return rc;
    rc = nng_rep0_open(&endpoint->socket);
    if (rc == 0) /* a larger frame closes its connection before a byte of it is kept */
        rc = nng_socket_set_size(endpoint->socket, NNG_OPT_RECVMAXSZ, bytes_max);
    if (rc == 0) /* so that connections of machines that went without a word end some day */
        rc = nng_socket_set_bool(endpoint->socket, NNG_OPT_TCP_KEEPALIVE, true);
    if (rc != 0)
        return error_set(err, -ENOMEM, "open a socket for calls: %s", nng_strerror(rc));
    endpoint->server = server;
    endpoint->held = held;
    return 0;
}

int rpc_server_create(const struct rpc_server_options *options, struct rpc_server **out,
                      struct error *err)
{
    assert(options->term > 0);
    struct rpc_server *server = xcalloc(1, sizeof *server);
    server->options = *options;
    if (!server->options.hold_ms)
        server->options.hold_ms = HOLD_MS;
    if (!server->options.held_count_max)
        server->options.held_count_max = HELD_COUNT_MAX;
    if (!server->options.clock_cb)
        server->options.clock_cb = clock_ms;
    server->handlers = xcalloc(options->service->descriptor->n_methods, sizeof *server->handlers);
    server->handling = xcalloc(options->service->descriptor->n_methods, sizeof *server->handling);
    server->held_next_ms = UINT64_MAX;
    server->arrived_end = &server->arrived;
    server->answered_end = &server->answered;
    pthread_mutex_init(&server->lock, NULL);

    int rc = 0;
    server->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->fd < 0)
        rc = error_set(err, -errno, "open an eventfd: %s", strerror(errno));
    if (rc == 0)
        rc = endpoint_init(&server->unary, server, false, err);
    if (rc == 0)
        rc = endpoint_init(&server->held, server, true, err);
    if (rc < 0) {
        rpc_server_destroy(server);
        return rc;
    }
    const nng_socket sockets[] = {server->unary.socket, server->held.socket};
    for (int i = 0; i < 2; i++) {
        nng_pipe_notify(sockets[i], NNG_PIPE_EV_ADD_PRE, peers_changed, server);
        nng_pipe_notify(sockets[i], NNG_PIPE_EV_REM_POST, peers_changed, server);
    }
    *out = server;
    return 0;
}

static void endpoint_finish(struct endpoint *endpoint)
{
    nng_close(endpoint->socket); /* ends every receive and send; one never opened is refused */
    for (size_t i = 0; i < endpoint->call_count; i++)
        call_destroy(endpoint->calls[i]);
    free(endpoint->calls);
}

void rpc_server_destroy(struct rpc_server *server)
{
    if (!server)
        return;
    endpoint_finish(&server->unary);
    endpoint_finish(&server->held);
    for (size_t i = 0; i < server->listener_count; i++)
        free(server->listeners[i]);
    free(server->listeners);
    free(server->handlers);
    free(server->handling);
    free(server->parked);
    free(server->peers);
    free(server->gone);
    if (server->fd >= 0)
        close(server->fd);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void rpc_server_handle(struct rpc_server *server, unsigned method, rpc_handler_cb handler,
                       void *data)
{
    assert(method < server->options.service->descriptor->n_methods);
    server->handlers[method] = (struct handler){handler, data};
}

/* Translates an error of NNG's listener into a negative errno and a text. */
static int listen_error(int rc, const char *address, struct error *err)
{
    switch (rc) {
    case NNG_EADDRINUSE:
        return error_set(err, -EADDRINUSE,
                         "listen at %s: the port is in use; stop what runs there, perhaps another "
                         "coordinator, or choose another port",
                         address);
    case NNG_EPERM:
        return error_set(err, -EACCES, "listen at %s: not permitted; choose a port above 1023",
                         address);
    default:
        return error_set(err, -EADDRNOTAVAIL, "listen at %s: %s", address, nng_strerror(rc));
    }
}

/* Listens, and finds out the real port of the listener. */
static int listen_on(struct endpoint *endpoint, const struct rpc_address *address, unsigned port,
                     nng_tls_config *tls, nng_listener *out, uint16_t *bound, struct error *err)
{
    char text[96];
    int number = 0;
    if (port > UINT16_MAX)
        return error_set(err, -EINVAL,
                         "held calls need the port above %u, and there is none: choose a smaller "
                         "one",
                         port - 1);
    rpc_address_print(text, sizeof text, address, (uint16_t)port);
    int rc = nng_listener_create(out, endpoint->socket, text);
    if (rc == 0 && tls)
        rc = nng_listener_set_ptr(*out, NNG_OPT_TLS_CONFIG, tls);
    if (rc == 0)
        rc = nng_listener_start(*out, 0);
    if (rc == 0)
        rc = nng_listener_get_int(*out, NNG_OPT_TCP_BOUND_PORT, &number);
    if (rc != 0)
        return listen_error(rc, text, err);
    *bound = (uint16_t)number;
    return call_open_spares(endpoint, err);
}

/* Accepts a listener that was set up only in part. */
static void close_listener(struct listener *listener)
{
    for (unsigned i = 0; i < 2; i++)
        if (nng_listener_id(listener->nng[i]) > 0)
            nng_listener_close(listener->nng[i]);
    free(listener);
}

static int listen_at(struct rpc_server *server, unsigned roles, const struct rpc_address *address,
                     nng_tls_config *tls, struct error *err)
{
    struct listener *listener = xcalloc(1, sizeof *listener);
    uint16_t port = 0;
    listener->roles = roles;
    int rc = listen_on(&server->unary, address, address->port, tls, &listener->nng[0], &port, err);
    if (rc == 0)
        rc = listen_on(&server->held, address, address->port ? address->port + 1u : 0, tls,
                       &listener->nng[1], &listener->held_port, err);
    if (rc < 0) {
        close_listener(listener);
        return rc;
    }
    rpc_address_print(listener->address, sizeof listener->address, address, port);
    server->listeners = grow(server->listeners, server->listener_count, &server->listener_capacity,
                             sizeof *server->listeners);
    server->listeners[server->listener_count++] = listener;
    return 0;
}

int rpc_server_listen_tls(struct rpc_server *server, unsigned roles, const char *text,
                          const struct rpc_tls *tls, struct error *err)
{
    struct rpc_address address;
    nng_tls_config *config = NULL;
    int rc = rpc_address_parse(text, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, tls != NULL, err);
    if (rc == 0 && tls)
        rc = transport_tls(tls, NULL, &config, err);
    if (rc == 0)
        rc = listen_at(server, roles, &address, config, err);
    if (config)
        nng_tls_config_free(config);
    return rc;
}

int rpc_server_listen(struct rpc_server *server, unsigned roles, const char *text,
                      struct error *err)
{
    return rpc_server_listen_tls(server, roles, text, NULL, err);
}

void rpc_server_unlisten(struct rpc_server *server)
{
    while (server->listener_count > 0)
        close_listener(server->listeners[--server->listener_count]);
}

const char *rpc_server_address(const struct rpc_server *server, size_t index)
{
    return index < server->listener_count ? server->listeners[index]->address : NULL;
}

const struct rpc_counters *rpc_server_counters(const struct rpc_server *server)
{
    return &server->counters;
}

const struct histogram *rpc_server_handling(const struct rpc_server *server, unsigned method)
{
    return &server->handling[method];
}

int rpc_server_fd(const struct rpc_server *server)
{
    return server->fd;
}

/* Connections that failed their TLS handshake, or have not finished it. NNG never hands these over
 * and only counts them in its statistics. Only the count of failed authentications is used, since
 * its other counts include connections that had been good. */

static uint64_t stat_value(nng_stat *scope, const char *name)
{
    nng_stat *stat = nng_stat_child(scope);
    while (stat && strcmp(nng_stat_name(stat), name) != 0)
        stat = nng_stat_next(stat);
    return stat ? nng_stat_value(stat) : 0;
}

/* Needed because nng_stat_find_listener() of release 1.5.2 finds a socket's first listener only. */
static uint64_t count_refused(nng_stat *root, nng_listener listener)
{
    for (nng_stat *scope = nng_stat_child(root); scope; scope = nng_stat_next(scope))
        if (strcmp(nng_stat_name(scope), "listener") == 0 &&
            stat_value(scope, "id") == (uint64_t)nng_listener_id(listener))
            return stat_value(scope, "auth");
    return 0;
}

uint64_t rpc_server_handshakes_refused(const struct rpc_server *server)
{
    nng_stat *root;
    uint64_t sum = 0;
    if (nng_stats_get(&root) != 0)
        return 0;
    for (size_t i = 0; i < server->listener_count; i++)
        for (unsigned held = 0; held < 2; held++)
            sum += count_refused(root, server->listeners[i]->nng[held]);
    nng_stats_free(root);
    return sum;
}

size_t rpc_server_end_handshakes(struct rpc_server *server, uint64_t older_ms)
{
    uint16_t ports[2 * LISTENERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < server->listener_count && i < LISTENERS_MAX; i++) {
        const struct listener *listener = server->listeners[i];
        int port = 0;
        nng_listener_get_int(listener->nng[0], NNG_OPT_TCP_BOUND_PORT, &port);
        ports[count++] = (uint16_t)port;
        ports[count++] = listener->held_port;
    }
    return handshakes_end(ports, count, older_ms);
}

void rpc_hello(struct rpc_call *call, void *data)
{
    (void)data;
    const struct rpc_server_options *options = &call->server->options;
    Gimbal__HelloReply reply = GIMBAL__HELLO_REPLY__INIT;
    reply.release = (char *)(options->release ? options->release : "");
    reply.term = options->term;
    reply.instance = options->instance;
    reply.cluster = options->cluster;
    reply.held_port = call->listener->held_port;
    reply.unix_ms = options->calendar_cb ? options->calendar_cb() : 0;
    rpc_call_reply(call, &reply.base);
}

static const struct rpc_method *method_of(const struct rpc_call *call)
{
    return &call->server->options.service->methods[call->method];
}

/* The listener that accepted the call's connection; NULL when it has closed. */
static const struct listener *find_listener(const struct rpc_call *call)
{
    int id = nng_listener_id(nng_pipe_listener(call->pipe));
    for (size_t i = 0; i < call->server->listener_count; i++)
        if (nng_listener_id(call->server->listeners[i]->nng[call->endpoint->held]) == id)
            return call->server->listeners[i];
    return NULL;
}

static enum rpc_status call_check_frame(struct rpc_call *call, struct error *err)
{
    int rc = envelope_decode(call->frame, &call->envelope, err);
    nng_msg_free(call->frame);
    call->frame = NULL;
    if (rc == 0 && call->envelope->kind != GIMBAL__ENVELOPE__KIND__REQUEST)
        rc = error_set(err, -EPROTO, "the envelope is not that of a request");
    if (rc == 0)
        return RPC_OK;
    call->server->counters.malformed++;
    return RPC_INVALID_ARGUMENT;
}

static enum rpc_status call_check_version(struct rpc_call *call, struct error *err)
{
    if (rpc_check_version(call->envelope, err) == 0)
        return RPC_OK;
    call->server->counters.wrong_version++;
    return RPC_FAILED_PRECONDITION;
}

static const char *server_who(unsigned roles)
{
    static const char *const names[] = {[RPC_WORKER] = "workers",
                                        [RPC_USER] = "users",
                                        [RPC_WORKER | RPC_USER] = "workers and users",
                                        [RPC_ADMIN] = "administrators",
                                        [RPC_WORKER | RPC_ADMIN] = "workers and administrators",
                                        [RPC_USER | RPC_ADMIN] = "users and administrators",
                                        [RPC_EVERYBODY] = "everybody"};
    return names[roles & RPC_EVERYBODY];
}

/* The port that people write in the address of this listener. */
static unsigned written_port(const struct listener *listener)
{
    struct rpc_address address;
    if (rpc_address_parse(listener->address, &address, NULL) < 0)
        return 0;
    return address.port - (address.tls ? rpc_address_offset(listener->roles) : 0u);
}

static enum rpc_status call_check_port(const struct rpc_call *call, struct error *err)
{
    const char *asked = method_of(call)->asked;
    if ((method_of(call)->kind == RPC_HELD) == call->endpoint->held)
        return RPC_OK;
    if (call->endpoint->held)
        error_set(err, 0,
                  "the request %s came in on the port for calls that wait: the port of the address "
                  "is %u",
                  asked, written_port(call->listener));
    else
        error_set(err, 0, "the request %s came in on the wrong port: it is a call that waits",
                  asked);
    return RPC_INVALID_ARGUMENT;
}

static enum rpc_status call_check_role(const struct rpc_call *call, struct error *err)
{
    const struct rpc_method *method = method_of(call);
    const struct listener *listener = call->listener;
    if (method->roles & listener->roles)
        return RPC_OK;
    error_set(err, 0,
              "the request %s is not open to %s, as whom you call at %s: it takes the certificates "
              "of %s",
              method->asked, server_who(listener->roles), listener->address,
              server_who(method->roles));
    return RPC_PERMISSION_DENIED;
}

/* The method must exist, have a handler, come in on the right socket and be open to the role. */
static enum rpc_status call_check_method(struct rpc_call *call, struct error *err)
{
    const struct rpc_server *server = call->server;
    const char *service = server->options.service->descriptor->short_name;
    const char *name = call->envelope->method;
    call->method = rpc_service_find(server->options.service, name);
    if (call->method < 0) {
        error_set(err, 0, "%s does not know the request '%.64s': is the caller's release newer?",
                  service, name);
        return RPC_UNIMPLEMENTED;
    }
    if (!server->handlers[call->method].cb) {
        error_set(err, 0, "%s does not take the request %s", service, method_of(call)->asked);
        return RPC_UNIMPLEMENTED;
    }
    enum rpc_status status = call_check_port(call, err);
    return status == RPC_OK ? call_check_role(call, err) : status;
}

static enum rpc_status call_check_identity(struct rpc_call *call, struct error *err)
{
    const struct rpc_server_options *options = &call->server->options;
    if (!options->admit_cb || method_of(call)->to_strangers)
        return RPC_OK;
    return rpc_status_of_errno(
        options->admit_cb(options->data, call->listener->roles, call->envelope, err));
}

static enum rpc_status call_check_deadline(struct rpc_call *call, struct error *err)
{
    uint64_t waited_ms = call->server->options.clock_cb() - call->arrived_ms;
    uint32_t deadline_ms = call->envelope->deadline_ms;
    if (deadline_ms == 0) {
        error_set(err, 0, "the request %s came without a deadline: every request has one",
                  method_of(call)->asked);
        return RPC_INVALID_ARGUMENT;
    }
    if (waited_ms < deadline_ms)
        return RPC_OK;
    call->server->counters.expired++;
    error_set(err, 0,
              "the request %s waited %" PRIu64 " ms to be handled, its deadline was %" PRIu32 " ms",
              method_of(call)->asked, waited_ms, deadline_ms);
    return RPC_DEADLINE_EXCEEDED;
}

static enum rpc_status call_check_term(struct rpc_call *call, struct error *err)
{
    const struct rpc_server_options *options = &call->server->options;
    const Gimbal__Envelope *envelope = call->envelope;
    if (method_of(call)->any_term ||
        (envelope->term == options->term && envelope->instance == options->instance))
        return RPC_OK;
    call->server->counters.stale++;
    error_set(err, 0,
              "the request %s is of term %" PRIu64 " (instance %016" PRIx64
              "), this is term %" PRIu64 " (instance %016" PRIx64 "): open a session first",
              method_of(call)->asked, envelope->term, envelope->instance, options->term,
              options->instance);
    return RPC_FAILED_PRECONDITION;
}

static enum rpc_status call_check_request(struct rpc_call *call, struct error *err)
{
    const struct rpc_method *method = method_of(call);
    const ProtobufCBinaryData *payload = &call->envelope->payload;
    if (payload->len > method->request_bytes_max) {
        error_set(err, 0, "a request %s may have %zu bytes, this one has %zu", method->asked,
                  method->request_bytes_max, payload->len);
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (!method->idempotent && !*call->envelope->idempotency_key) {
        error_set(err, 0, "the request %s changes something: it needs an idempotency key",
                  method->asked);
        return RPC_INVALID_ARGUMENT;
    }
    int rc = message_unpack(call->server->options.service->descriptor->methods[call->method].input,
                            payload->data, payload->len, message_quota(payload->len),
                            &call->request, err);
    if (rc == 0)
        return RPC_OK;
    return rc == -ENOMEM ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT;
}

typedef enum rpc_status (*check_fn)(struct rpc_call *call, struct error *err);
static const check_fn call_checks[] = {call_check_frame,    call_check_version,  call_check_method,
                                       call_check_identity, call_check_deadline, call_check_term,
                                       call_check_request};

/* Checks a call that arrived, and runs its handler or refuses it. */
static void call_dispatch(struct rpc_call *call)
{
    struct error err = {""};
    call->method = -1;
    call->server->counters.arrived++;
    call->listener = find_listener(call);
    enum rpc_status status = RPC_OK;
    if (!call->listener) {
        error_set(&err, 0, "the connection has closed");
        status = RPC_CANCELLED;
    }
    for (size_t i = 0; i < sizeof call_checks / sizeof *call_checks && status == RPC_OK; i++)
        status = call_checks[i](call, &err);
    if (status != RPC_OK) {
        call_answer(call, status, err.text, NULL);
        return;
    }
    peers_claim(call->server, call->pipe, call->envelope->client, call->endpoint->held);
    const struct rpc_server_options *options = &call->server->options;
    if (options->heard_cb)
        options->heard_cb(options->data, call->listener->roles, call->envelope);
    /* Read before the handler runs: once answered, the object may already be another call. */
    struct histogram *handling = &call->server->handling[call->method];
    uint64_t arrived_ns = call->arrived_ns;
    call_run(call);
    histogram_add(handling, clock_ns() - arrived_ns);
}

/* Ends the parked calls of closed connections, and reports clients that have no other connection.
 */
static void server_reap(struct rpc_server *server, struct peer *gone, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        held_reap(server, gone[i].pipe);
        if (server->options.gone_cb && peers_end(server, &gone[i], count - 1 - i))
            server->options.gone_cb(server->options.data, gone[i].client);
    }
}

size_t rpc_server_poll(struct rpc_server *server, int timeout_ms)
{
    int due_ms = rpc_server_timeout_ms(server);
    struct pollfd fd = {.fd = server->fd, .events = POLLIN};
    if (timeout_ms < 0 || (due_ms >= 0 && due_ms < timeout_ms))
        timeout_ms = due_ms;
    if (poll(&fd, 1, timeout_ms) > 0) {
        eventfd_t raised;
        eventfd_read(server->fd, &raised);
    }

    pthread_mutex_lock(&server->lock);
    struct rpc_call *arrived = server->arrived;
    struct peer *gone = server->gone;
    size_t gone_count = server->gone_count, handled = 0;
    server->arrived = NULL;
    server->arrived_end = &server->arrived;
    server->gone = NULL;
    server->gone_count = server->gone_capacity = 0;
    pthread_mutex_unlock(&server->lock);

    /* Calls before closed connections: so a last call of a dead client is parked, then reaped. */
    while (arrived) {
        struct rpc_call *call = arrived;
        arrived = call->next;
        call_dispatch(call);
        handled++;
    }
    server_reap(server, gone, gone_count);
    free(gone);
    held_expire(server, server->options.clock_cb());
    return handled;
}
