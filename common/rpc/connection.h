/* connection.h - internal to the client: one REQ socket, and the connection it maintains.
 *
 * NNG redials when a connection closes, but a peer that is stopped or behind a cut cable never
 * closes it. So the connection is given up when a call times out on it and nothing at all was heard
 * since that call was sent, or since it began waiting to be sent. A server that is slow with one
 * call but answers others keeps its connection. */
#ifndef COMMON_RPC_CONNECTION_H
#define COMMON_RPC_CONNECTION_H

#include "common/base/error.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
