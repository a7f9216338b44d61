/* server.c - sockets and listeners, and the queue from NNG's threads to the polling thread. */
#include "common/rpc/server.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/rpc/address.h"
#include "common/rpc/call.h"
#include "common/rpc/closing.h"
#include "common/rpc/envelope.h"

#include <assert.h>
#include <errno.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/tls/tls.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HOLD_MS 20000
#define HELD_COUNT_MAX 16384

static int endpoint_init(struct endpoint *endpoint, struct rpc_server *server, bool held,
                         struct error *err)
{
    size_t bytes_max = ENVELOPE_BYTES_MAX + rpc_service_request_bytes_max(server->options.service);
    int rc = closing_check(err);
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
        rc = rpc_tls_config(tls, NULL, &config, err);
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

void server_raise(struct rpc_server *server)
{
    eventfd_write(server->fd, 1); /* fails only when it is raised 2^64 times already */
}

void server_arrived(struct rpc_server *server, struct rpc_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&server->lock);
    *server->arrived_end = call;
    server->arrived_end = &call->next;
    pthread_mutex_unlock(&server->lock);
    server_raise(server);
}

/* Ends the parked calls of closed connections, and reports clients that have no other connection.
 */
static void reap(struct rpc_server *server, struct peer *gone, size_t count)
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
    reap(server, gone, gone_count);
    free(gone);
    held_expire(server, server->options.clock_cb());
    return handled;
}
