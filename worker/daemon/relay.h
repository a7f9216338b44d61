/* relay.h - relays executors' questions about their epoch's key-value store to the coordinator.
 *
 * A get of a value that is not there yet is a long poll. A client may have one of those per key, so
 * ranks of this node that want the same value share it. Temporary failures are retried. A refusal
 * is reported, and also retried until the rank is forgotten. A coordinator keeps values only while
 * it runs, so puts are remembered here and repeated in a new term. Exceptions are values that it
 * stores on disk: those are forgotten here once they are accepted. */
#ifndef WORKER_DAEMON_RELAY_H
#define WORKER_DAEMON_RELAY_H

#include "common/rpc/client.h"
#include "proto/executor.pb-c.h"

struct relay;

struct relay_hooks {
    /* The answer to question `id` of a rank; everything is lent. Must not call the relay. */
    void (*answer)(void *data, uint64_t rank, const Gimbal__ExecutorRendezvous *answer);
    /* The coordinator refused a question, which was asked in that term. Must not call the relay. */
    void (*refused)(void *data, uint64_t rank, uint64_t term, enum rpc_status status,
                    const char *text);
    void *data;
};

/* The hooks are copied. There is no client yet: relay_use. */
struct relay *relay_create(const struct relay_hooks *hooks);
/* Accepts NULL. */
void relay_destroy(struct relay *relay);
/* From now on make calls by this client, which is lent; NULL before it is closed. */
void relay_use(struct relay *relay, struct rpc_client *client);
/* The coordinator is in this term. If that is a new one, repeat all puts. */
void relay_renew(struct relay *relay, uint64_t term);
/* Ask a rank's question, which is copied. */
void relay_ask(struct relay *relay, uint64_t rank, const char *job, uint64_t epoch,
               const Gimbal__ExecutorRendezvous *question);
/* Drop the questions of a rank that is gone. */
void relay_forget(struct relay *relay, uint64_t rank);

#endif
