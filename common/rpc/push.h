/* push.h - sends numbered records up a client-stream until they are acknowledged.
 *
 * One batch is in flight at a time; records appended meanwhile go with the next. While the server
 * is away or asks for a new Hello, records wait, and when there are too many the oldest are
 * dropped. */
#ifndef COMMON_RPC_PUSH_H
#define COMMON_RPC_PUSH_H

#include "common/rpc/client.h"

#include <stddef.h>

struct rpc_push;

/* Start pushing to a method that takes a PushBatch, keeping at most record_count_max records. Must
 * be stopped before its client is closed. */
struct rpc_push *rpc_push_start(struct rpc_client *client, unsigned method, const char *stream,
                                size_t record_count_max);
/* Records not yet acknowledged are forgotten. Accepts NULL. */
void rpc_push_stop(struct rpc_push *push);
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
