/* watch.h - follows a stream of the server, record by record, across lost connections.
 *
 * A watch always has one held call waiting. It delivers every record once and in order, or reports
 * why it cannot continue: OUT_OF_RANGE (read a snapshot), FAILED_PRECONDITION (the term has ended:
 * call Hello), or any other refusal of the server. It then rests until rpc_watch_resume(). If the
 * server is merely away, the watch retries silently until it is back. */
#ifndef COMMON_RPC_WATCH_H
#define COMMON_RPC_WATCH_H

#include "common/rpc/client.h"
#include "proto/stream.pb-c.h"

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

#endif
