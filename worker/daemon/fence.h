/* fence.h - which coordinator this node obeys, where it survives the worker.
 *
 * An older start of the coordinator, one from a copy of its disk or one of another cluster must
 * not give orders here. So the newest start that the worker has worked for is kept in a file
 * before the worker acts on it. */
#ifndef WORKER_DAEMON_FENCE_H
#define WORKER_DAEMON_FENCE_H

#include "common/rpc/client.h"

/* The file of the node of that name; yours. */
char *fence_path(const char *state, const char *node);
/* Zeros where there is no file. -EPROTO when it holds something else; -errno. */
int fence_read(const char *path, struct rpc_fence *out, struct error *err);
/* Durable when it returns 0. */
int fence_write(const char *path, const struct rpc_fence *fence, struct error *err);

#endif
