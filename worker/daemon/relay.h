/* relay.h - carries what executors ask of their epoch's key-value store to the coordinator.
 *
 * A value that nobody has put yet is waited for in a held call. Of those a client may have one
 * per key, so ranks of this node that want the same value share it. What fails for the moment is
 * asked again; what the coordinator refuses is told, and asked again as well until the rank is
 * forgotten. A coordinator keeps values only while it runs: what was put is remembered here, and
 * put again in a new term; but for those that it stores, which it forgets when they are used. */
#ifndef WORKER_DAEMON_RELAY_H
#define WORKER_DAEMON_RELAY_H

#include "common/rpc/client.h"
#include "proto/executor.pb-c.h"

struct relay;

struct relay_hooks {
    /* The answer to question `id` of a rank; all lent. */
    void (*answer)(void *data, uint64_t rank, const Gimbal__ExecutorRendezvous *answer);
    /* The coordinator refused it; it was asked in that term. Neither may call the relay. */
    void (*refused)(void *data, uint64_t rank, uint64_t term, enum rpc_status status,
                    const char *text);
    void *data;
};

struct relay *relay_create(const struct relay_hooks *hooks);
/* Accepts NULL. */
void relay_destroy(struct relay *relay);
/* Call by this client from now on, lent; NULL before it is closed. */
void relay_use(struct relay *relay, struct rpc_client *client);
/* The coordinator is in this term: one that was not before has no values yet. */
void relay_renew(struct relay *relay, uint64_t term);
/* Copies what it needs. */
void relay_ask(struct relay *relay, uint64_t rank, const char *job, uint64_t epoch,
               const Gimbal__ExecutorRendezvous *question);
/* The rank is gone: nobody waits for its answers. */
void relay_forget(struct relay *relay, uint64_t rank);

#endif
