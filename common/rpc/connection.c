/* connection.c - dialling, and giving up what is silent. */
#include "common/rpc/connection.h"

#include "common/rpc/clock.h"
#include "common/rpc/envelope.h"
#include "common/rpc/method.h"

#include <errno.h>
#include <nng/protocol/reqrep0/req.h>

/* NNG dials again after these pauses, doubling and jittered. */
#define REDIAL_MS_MIN 50
#define REDIAL_MS_MAX 2000

static void connected(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    struct connection *connection = data;
    (void)event;
    pthread_mutex_lock(&connection->lock);
    connection->pipe = pipe;
    pthread_mutex_unlock(&connection->lock);
}

static int set_options(nng_socket socket)
{
    /* Deadlines and retries are ours. */
    int rc = nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (rc == 0)
        rc = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, REDIAL_MS_MIN);
    if (rc == 0)
        rc = nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, REDIAL_MS_MAX);
    if (rc == 0)
        rc = nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ,
                                 ENVELOPE_BYTES_MAX + RPC_REPLY_BYTES_MAX);
    return rc;
}

int connection_open(struct connection *connection, struct error *err)
{
    *connection = (struct connection){0};
    int rc = nng_req0_open(&connection->socket);
    if (rc == 0)
        rc = set_options(connection->socket);
    if (rc != 0) {
        nng_close(connection->socket);
        return error_set(err, -ENOMEM, "open a socket: %s", nng_strerror(rc));
    }
    pthread_mutex_init(&connection->lock, NULL);
    nng_pipe_notify(connection->socket, NNG_PIPE_EV_ADD_PRE, connected, connection);
    return 0;
}

void connection_close(struct connection *connection)
{
    nng_close(connection->socket);
    pthread_mutex_destroy(&connection->lock);
}

int connection_dial(struct connection *connection, const char *address, bool wait,
                    struct error *err)
{
    if (nng_dialer_id(connection->dialer) > 0)
        nng_dialer_close(connection->dialer);
    int rc =
        nng_dial(connection->socket, address, &connection->dialer, wait ? 0 : NNG_FLAG_NONBLOCK);
    if (rc == NNG_ECONNREFUSED)
        return error_set(err, -ECONNREFUSED,
                         "nobody listens at %s: start the coordinator, or give its address",
                         address);
    return rc == 0 ? 0 : error_set(err, -EHOSTDOWN, "dial %s: %s", address, nng_strerror(rc));
}

void connection_heard(struct connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    connection->heard_ms = rpc_clock_ms();
    pthread_mutex_unlock(&connection->lock);
}

void connection_suspect(struct connection *connection, uint64_t sent_ms)
{
    pthread_mutex_lock(&connection->lock);
    bool is_silent = connection->heard_ms <= sent_ms;
    nng_pipe pipe = connection->pipe;
    pthread_mutex_unlock(&connection->lock);
    if (is_silent && nng_pipe_id(pipe) > 0)
        nng_pipe_close(pipe);
}
