/* watch.h - follow a stream of the server, record by record, across lost connections.
 *
 * A watch keeps one held call waiting. It hands over every record once and in order, or says
 * why it cannot go on: OUT_OF_RANGE (read a snapshot), FAILED_PRECONDITION (the term has ended:
 * say Hello), or whatever else the server refused; it then rests until it is told from where to
 * go on. Where the server is only away, it asks again until it is back, and says nothing. */
#ifndef COMMON_RPC_WATCH_H
#define COMMON_RPC_WATCH_H

#include "common/rpc/client.h"
#include "proto/stream.pb-c.h"

struct rpc_watch;

struct rpc_watch_event {
    enum rpc_status status; /* RPC_OK: there are records; else the watch rests */
    const char *text;
    Gimbal__StreamRecord *const *records; /* lent to the callback */
    size_t count;
};

/* Runs in rpc_client_poll; may stop or resume its watch. */
typedef void (*rpc_watch_cb)(void *data, const struct rpc_watch_event *event);

/* Follow stream from behind (the client's term, revision) by calls of a held method that takes
 * a StreamPoll. The watch ends before its client does. */
struct rpc_watch *rpc_watch_start(struct rpc_client *client, unsigned method, const char *stream,
                                  uint64_t revision, rpc_watch_cb callback, void *data);
/* Of a watch that rests. */
void rpc_watch_resume(struct rpc_watch *watch, uint64_t revision);
/* Accepts NULL. */
void rpc_watch_stop(struct rpc_watch *watch);

#endif
