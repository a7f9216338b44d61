/* fence.h - remembers which coordinator this node obeys, in a file that survives the worker.
 *
 * A node must not take orders from an older start of its coordinator, from one that runs on a copy
 * of its disk, or from that of another cluster. So the worker writes the newest start that it works
 * for to a file before it acts on anything from it. */
#ifndef WORKER_DAEMON_FENCE_H
#define WORKER_DAEMON_FENCE_H

#include "common/rpc/client.h"

/* Path of a node's file; the caller frees it. */
char *fence_path(const char *state, const char *node);
/* Read the file; zeros if there is none. -EPROTO: it is malformed; otherwise -errno. */
int fence_read(const char *path, struct rpc_fence *out, struct error *err);
/* Replace the file. It is durable when this returns 0. */
int fence_write(const char *path, const struct rpc_fence *fence, struct error *err);

#endif
