/* connection.h - inside the client: one REQ socket and the connection it keeps making.
 *
 * NNG dials again when a connection closes, but a peer that was stopped, or that a cut cable
 * separates, closes nothing. So a connection is given up when a call runs out on it and nothing
 * at all was heard since that call was sent, or since it began to wait for being sent; a server
 * that is slow for one call and answers others keeps it. */
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
    nng_dialer dialer; /* the last one */
    pthread_mutex_t lock;
    nng_pipe pipe;     /* under lock, as heard_ms: the last one made */
    uint64_t heard_ms; /* being connected counts */
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
/* A call that was sent, or wanted to be, at that time has run out; on any thread. */
void connection_suspect(struct connection *connection, uint64_t sent_ms);

#endif
