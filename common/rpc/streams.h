/* streams.h - numbered records across lost connections, from the client's side: a watch follows
 * them down from the server, a push sends them up.
 *
 * A watch always has one held call waiting. It delivers every record once and in order, or reports
 * why it cannot continue: OUT_OF_RANGE (read a snapshot), FAILED_PRECONDITION (the term has ended:
 * call Hello), or any other refusal of the server. It then rests until rpc_watch_resume(). If the
 * server is merely away, the watch retries silently until it is back.
 *
 * A push sends records up a client-stream until they are acknowledged. One batch is in flight at a
 * time; records appended meanwhile go with the next. While the server is away or asks for a new
 * Hello, records wait, and when there are too many the oldest are dropped. */
#ifndef COMMON_RPC_STREAMS_H
#define COMMON_RPC_STREAMS_H

#include "common/rpc/client.h"
#include "proto/envelope.pb-c.h"

#include <stddef.h>

struct rpc_watch;

struct rpc_watch_event {
    enum rpc_status status; /* RPC_OK: there are records; otherwise the watch rests */
    const char *text;
    Gimbal__StreamRecord *const *records; /* valid during the callback */
    size_t count;
};

/* Runs in rpc_client_poll(); may stop or resume its watch. */
typedef void (*rpc_watch_cb)(void *data, const struct rpc_watch_event *event);

/* Follow a stream from after (the client's term, revision), by calls of a held method that takes a
 * StreamPoll. Must be stopped before its client is closed. */
struct rpc_watch *rpc_watch_start(struct rpc_client *client, unsigned method, const char *stream,
                                  uint64_t revision, rpc_watch_cb callback, void *data);
/* Let a resting watch continue after this revision. */
void rpc_watch_resume(struct rpc_watch *watch, uint64_t revision);
/* Accepts NULL. */
void rpc_watch_stop(struct rpc_watch *watch);

struct rpc_push;

/* Start pushing to a method that takes a PushBatch, keeping at most record_count_max records. Must
 * be stopped or held before its client is closed. */
struct rpc_push *rpc_push_start(struct rpc_client *client, unsigned method, const char *stream,
                                size_t record_count_max);
/* Records not yet acknowledged are forgotten. Accepts NULL. */
void rpc_push_stop(struct rpc_push *push);
/* Send nothing more over its client, and keep what was not acknowledged, until it is sent over
 * another client, to whose server it is a new stream. Accepts NULL. */
void rpc_push_hold(struct rpc_push *push);
void rpc_push_resume(struct rpc_push *push, struct rpc_client *client);
/* Append a copy of a record; -EMSGSIZE when it is larger than a batch may be. */
int rpc_push_append(struct rpc_push *push, const void *data, size_t size, struct error *err);
/* The number of records that are not acknowledged yet. */
size_t rpc_push_waiting(const struct rpc_push *push);
/* The number of the newest record, 0 before the first. */
uint64_t rpc_push_newest(const struct rpc_push *push);
/* Is no record up to this number waiting any more? */
bool rpc_push_settled(const struct rpc_push *push, uint64_t number);
/* How many records will never arrive: dropped here to make room, or refused by the server. */
uint64_t rpc_push_lost(const struct rpc_push *push);

#endif
