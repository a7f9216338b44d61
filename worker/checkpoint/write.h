/* write.h - puts a checkpoint on disk in such a way that its name never denotes a half of one.
 *
 * A checkpoint is a folder such as "step-40.epoch-2", with a shard from every rank that owns a
 * slice, and the manifest, which is written last. Each file is written under another name, made
 * durable and renamed, and the rename is made durable too. A folder without a manifest is not a
 * checkpoint, whatever else it has. */
#ifndef WORKER_CHECKPOINT_WRITE_H
#define WORKER_CHECKPOINT_WRITE_H

#include "common/checkpoint/name.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard.h"

/* Write the slices, whose data lie one after another at `data`, and set their checksums. *out
 * describes the file; the caller frees its name. -EEXIST: the file exists already; -ENOSPC, -EFBIG
 * and others: nothing is left of it. */
int shard_write(const char *folder, int rank, struct slice *slices, size_t count, const void *data,
                struct manifest_shard *out, struct error *err);

/* Delete a checkpoint, or what there is of one, manifest first. It is no error if there is none. */
int checkpoint_delete(const char *folder, struct error *err);

/* Delete checkpoints in `root` that are not among the `count` names to keep, if they are of an
 * earlier epoch, or of this epoch and no newer than `step`: those that are no longer listed, and
 * remains of others. */
int checkpoint_clean(const char *root, uint64_t epoch, uint64_t step, const char *const *keep,
                     size_t count, struct error *err);

#endif
