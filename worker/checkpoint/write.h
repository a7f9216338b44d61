/* write.h - putting a checkpoint on the disk so that its name never shows half of it.
 *
 * A checkpoint is a folder, "step-40.epoch-2": a shard from every rank that owns a slice, then
 * the manifest. Each file is written under another name, made durable, renamed, and the name made
 * durable as well. A folder without a manifest is none, whatever else is in it. */
#ifndef WORKER_CHECKPOINT_WRITE_H
#define WORKER_CHECKPOINT_WRITE_H

#include "common/checkpoint/name.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard.h"

/* Write the slices, whose data lie one behind the other at `data` in their order; their checksums
 * are filled in. *out says what was written; its file's name is yours. -EEXIST when there is such
 * a file; -ENOSPC, -EFBIG... in words; nothing is left of it then. */
int shard_write(const char *folder, int rank, struct slice *slices, size_t count, const void *data,
                struct manifest_shard *out, struct error *err);

/* Delete a checkpoint, or what there is of one: the manifest first. No error where there is none.
 */
int checkpoint_delete(const char *folder, struct error *err);

/* Delete the checkpoints in `root` of `epoch` and older ones that are not among the `count` names
 * to keep and are no newer than `step` in this epoch: dropped ones, and what was left behind. */
int checkpoint_clean(const char *root, uint64_t epoch, uint64_t step, const char *const *keep,
                     size_t count, struct error *err);

#endif
