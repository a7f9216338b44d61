/* checkpoint.h - a checkpoint as a whole, under any plan: fills a box of a tensor from whatever
 * slices there are, verifies and deletes.
 *
 * A checkpoint is a folder such as "step-40.epoch-2", with a shard from every rank that owns a
 * slice, and the manifest, which is written last. A folder without a manifest is not a checkpoint,
 * whatever else it has.
 *
 * Nothing is trusted: sizes of files, checksums and contents of headers are checked against the
 * manifest when the checkpoint is opened, and every slice against its checksum when it is loaded.
 * Not thread-safe. */
#ifndef WORKER_CHECKPOINT_CHECKPOINT_H
#define WORKER_CHECKPOINT_CHECKPOINT_H

#include "common/checkpoint/manifest.h"
#include "common/config/folders.h"
#include "worker/checkpoint/shard.h"

#include <stdio.h>

struct checkpoint;

/* Open a checkpoint. -ENOENT: it is incomplete; -EINVAL, -EIO: it is damaged, err names the file.
 * The caller closes *out. */
int checkpoint_open(const char *folder, struct checkpoint **out, struct error *err);
/* Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);
const struct manifest *checkpoint_manifest(const struct checkpoint *checkpoint); /* lent */

/* Check that the checkpoint holds the state of this model after `step`. -EINVAL. */
int checkpoint_expect(const struct checkpoint *checkpoint, uint64_t step, const struct graph *graph,
                      struct error *err);

/* Fill out, row-major, with a box of one part of a tensor. -ENODATA: some of it is in no shard;
 * -EIO: a slice is damaged; -ENOBUFS: no memory for a slice. */
int checkpoint_load(struct checkpoint *checkpoint, const char *tensor, enum state_part part,
                    const struct box *box, float *out, struct error *err);

/* Read a whole checkpoint, check it against every checksum, and print a line per shard to `out`,
 * which may be NULL. Every element of every tensor must be there exactly once. Stops at the first
 * damage, and returns its errno. */
int checkpoint_verify(const char *folder, FILE *out, struct error *err);

/* Delete a checkpoint, or what there is of one, manifest first. It is no error if there is none. */
int checkpoint_delete(const char *folder, struct error *err);

/* Delete checkpoints in `root` that are not among the `count` names to keep, if they are of an
 * earlier epoch, or of this epoch and no newer than `step`: those that are no longer listed, and
 * remains of others. */
int checkpoint_clean(const char *root, uint64_t epoch, uint64_t step, const char *const *keep,
                     size_t count, struct error *err);

#endif
