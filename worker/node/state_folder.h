/* state_folder.h - what of a worker survives it: the lock on its node's name, and which coordinator
 * it obeys.
 *
 * Two workers that keep the same state would replace each other forever. So a worker holds a lock
 * on a file of its name in the folder for as long as it lives. Children do not inherit the lock,
 * and the kernel releases it when the process ends, however that happens.
 *
 * A node must not take orders from an older start of its coordinator, from one that runs on a copy
 * of its disk, or from that of another cluster. So the worker writes the newest start that it works
 * for to another file, its fence, before it acts on anything from it. */
#ifndef WORKER_NODE_STATE_FOLDER_H
#define WORKER_NODE_STATE_FOLDER_H

#include "common/rpc/client.h"

/* Create the folder if it is missing, and lock the name in it; *out is for state_folder_unlock().
 * -EBUSY: another worker holds it; otherwise -errno. If the file system has no locks, a warning is
 * logged and the name counts as locked. */
int state_folder_lock(const char *state, const char *node, int *out, struct error *err);
/* Release the lock. Accepts -1. The file stays, because another worker may have opened it
 * already. */
void state_folder_unlock(int lock);

/* Path of a node's fence; the caller frees it. */
char *fence_path(const char *state, const char *node);
/* Read the file; zeros if there is none. -EPROTO: it is malformed; otherwise -errno. */
int fence_read(const char *path, struct rpc_fence *out, struct error *err);
/* Replace the file. It is durable when this returns 0. */
int fence_write(const char *path, const struct rpc_fence *fence, struct error *err);

#endif
