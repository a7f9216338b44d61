/* connection.c - dials, with a thread that closes the dialer under the one that waits for it, and
 * gives up connections that are silent. */
#include "common/rpc/client_internal.h"

#include "common/base/clock.h"
#include "common/rpc/nng_fixes.h"
#include "common/rpc/protocol.h"
#include "common/rpc/transport.h"

#include <errno.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* NNG dials again after these pauses, doubling and jittered. */
#define REDIAL_MS_MIN 50
#define REDIAL_MS_MAX 2000

static void connection_made(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    struct connection *connection = data;
    (void)event;
    pthread_mutex_lock(&connection->lock);
    connection->pipe = pipe;
    connection->heard_ms = clock_ms();
    pthread_mutex_unlock(&connection->lock);
}

static int set_options(nng_socket socket)
{
    /* Retries are done in attempt.c, not by NNG. */
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
    int rc = nng_fixes_check(err);
    if (rc < 0)
        return rc;
    rc = nng_req0_open(&connection->socket);
    if (rc == 0)
        rc = set_options(connection->socket);
    if (rc != 0) {
        nng_close(connection->socket);
        return error_set(err, -ENOMEM, "open a socket: %s", nng_strerror(rc));
    }
    pthread_mutex_init(&connection->lock, NULL);
    nng_pipe_notify(connection->socket, NNG_PIPE_EV_ADD_PRE, connection_made, connection);
    return 0;
}

void connection_close(struct connection *connection)
{
    nng_close(connection->socket);
    pthread_mutex_destroy(&connection->lock);
}

struct alarm {
    pthread_mutex_t lock;
    pthread_cond_t over;
    nng_dialer dialer;
    struct timespec until;
    bool is_over, has_rung;
};

static void *dialing_watch(void *data)
{
    struct alarm *alarm = data;
    int rc = 0;
    pthread_mutex_lock(&alarm->lock);
    while (!alarm->is_over && rc == 0)
        rc = pthread_cond_clockwait(&alarm->over, &alarm->lock, CLOCK_MONOTONIC, &alarm->until);
    alarm->has_rung = !alarm->is_over;
    pthread_mutex_unlock(&alarm->lock);
    if (alarm->has_rung)
        nng_dialer_close(alarm->dialer);
    return NULL;
}

static void dialing_end(struct alarm *alarm, pthread_t thread)
{
    pthread_mutex_lock(&alarm->lock);
    alarm->is_over = true;
    pthread_cond_signal(&alarm->over);
    pthread_mutex_unlock(&alarm->lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&alarm->over);
    pthread_mutex_destroy(&alarm->lock);
}

/* Start the dialer and wait until it is connected, at most so long; one of NNG's codes,
 * NNG_ETIMEDOUT when the time is over: then the dialer is closed. 0 ms: as long as NNG waits, which
 * is ten seconds for a peer that takes connections and does not speak, as a process that is
 * stopped. */
static int dialing_start(nng_dialer dialer, uint32_t patience_ms)
{
    struct alarm alarm = {.dialer = dialer};
    pthread_t thread;
    if (patience_ms == 0)
        return nng_dialer_start(dialer, 0);
    clock_gettime(CLOCK_MONOTONIC, &alarm.until);
    alarm.until.tv_sec += patience_ms / 1000;
    alarm.until.tv_nsec += (long)(patience_ms % 1000) * 1000000;
    if (alarm.until.tv_nsec >= 1000000000) {
        alarm.until.tv_nsec -= 1000000000;
        alarm.until.tv_sec++;
    }
    pthread_mutex_init(&alarm.lock, NULL);
    pthread_cond_init(&alarm.over, NULL);
    if (pthread_create(&thread, NULL, dialing_watch, &alarm) != 0)
        return NNG_ENOMEM;
    int rc = nng_dialer_start(dialer, 0);
    dialing_end(&alarm, thread);
    return alarm.has_rung && rc != 0 ? NNG_ETIMEDOUT : rc;
}

/* Translates an error of nng_dialer_start() into a negative errno and a text. */
static int dial_error(int rc, const char *address, bool tls, struct error *err)
{
    if (rc == NNG_ECONNREFUSED)
        return error_set(err, -ECONNREFUSED,
                         "nobody listens at %s: start the coordinator, or give its address",
                         address);
    /* NNG does not say which side broke the handshake off. */
    if (tls && (rc == NNG_ECRYPTO || rc == NNG_EPEERAUTH))
        return error_set(err, -EACCES,
                         "no TLS with %s: its certificate has expired, is for another host name "
                         "or not signed by our ca.crt; or it does not accept ours, which has "
                         "expired or is of another role or cluster",
                         address);
    if (tls && (rc == NNG_ECONNSHUT || rc == NNG_ECLOSED || rc == NNG_ECONNRESET))
        return error_set(err, -EACCES, "no TLS with %s: it hung up; perhaps it listens without TLS",
                         address);
    if (rc == NNG_ECONNSHUT || rc == NNG_ECLOSED)
        return error_set(err, -EHOSTDOWN,
                         "dial %s: it hung up; perhaps it listens with TLS: then write tls+%s",
                         address, address);
    if (rc == NNG_EADDRINVAL)
        return error_set(err, -EHOSTDOWN, "dial %s: there is no such host", address);
    if (rc == NNG_ETIMEDOUT)
        return error_set(err, -EHOSTDOWN,
                         "dial %s: nothing came back in time; what runs there is stopped or very "
                         "busy, or a firewall is between",
                         address);
    return error_set(err, -EHOSTDOWN, "dial %s: %s", address, nng_strerror(rc));
}

int connection_dial(struct connection *connection, const char *address, nng_tls_config *tls,
                    bool wait, uint32_t patience_ms, struct error *err)
{
    nng_dialer *dialer = &connection->dialer;
    if (nng_dialer_id(*dialer) > 0)
        nng_dialer_close(*dialer);
    int rc = nng_dialer_create(dialer, connection->socket, address);
    if (rc == 0 && tls)
        rc = nng_dialer_set_ptr(*dialer, NNG_OPT_TLS_CONFIG, tls);
    if (rc == 0)
        rc = wait ? dialing_start(*dialer, patience_ms)
                  : nng_dialer_start(*dialer, NNG_FLAG_NONBLOCK);
    return rc == 0 ? 0 : dial_error(rc, address, tls != NULL, err);
}

void connection_heard(struct connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    connection->heard_ms = clock_ms();
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
