/* doorway.h - a server that listens once for each role with TLS, and who wants to come in. */
#ifndef TESTS_COMMON_RPC_DOORWAY_H
#define TESTS_COMMON_RPC_DOORWAY_H

#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/papers.h"

#define HOUR_S 3600
#define PATIENCE_MS 10000

/* Workers, users, administrators: whose certificates they show, and whose port it is. */
extern const unsigned doorway_roles[3];
extern const enum signer doorway_signers[3];

struct doorway {
    struct papers papers;
    struct rpc_server *server;
    char address[96]; /* the workers' */
    uint16_t port;
};

void doorway_open(struct doorway *doorway);
void doorway_close(struct doorway *doorway);
/* Dial with this certificate, believing whom a client should; the handshake needs no hand of the
 * server's thread. */
int doorway_dial(struct doorway *doorway, unsigned role, const struct certificate *own,
                 struct rpc_client **client, struct error *err);
/* Hello over the client's connection as it is. */
void doorway_expect_answer(struct doorway *doorway, struct rpc_client *client);
/* A right client is served, whatever others have done or are doing. */
void doorway_expect_served(struct doorway *doorway, unsigned index);
/* Until one more has been counted as refused than none. */
void doorway_await_refused(const struct doorway *doorway);

#endif
