/* push.h - send numbered records up a client-stream until they are acknowledged.
 *
 * One batch is under way at a time; what is appended meanwhile goes with the next. While the
 * server is away, or asks for a new Hello, records wait and the oldest make room for new ones. */
#ifndef COMMON_RPC_PUSH_H
#define COMMON_RPC_PUSH_H

#include "common/rpc/client.h"

#include <stddef.h>

struct rpc_push;

/* Push to a method that takes a PushBatch. Keeps at most record_count_max records. The push
 * ends before its client does. */
struct rpc_push *rpc_push_start(struct rpc_client *client, unsigned method, const char *stream,
                                size_t record_count_max);
/* What is not acknowledged is forgotten. Accepts NULL. */
void rpc_push_stop(struct rpc_push *push);
/* Copies the record; -EMSGSIZE when it is larger than a batch may be. */
int rpc_push_append(struct rpc_push *push, const void *data, size_t size, struct error *err);
/* Records that wait for their acknowledgement. */
size_t rpc_push_waiting(const struct rpc_push *push);
/* The number of the newest record, 0 before the first; and whether none up to that number waits. */
uint64_t rpc_push_newest(const struct rpc_push *push);
bool rpc_push_settled(const struct rpc_push *push, uint64_t number);
/* Records that will never arrive: dropped here to make room, or refused by the server. */
uint64_t rpc_push_lost(const struct rpc_push *push);

#endif
