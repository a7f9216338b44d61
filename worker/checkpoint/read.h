/* read.h - a checkpoint under any plan: fill my box of a tensor from the slices that there are.
 *
 * Opening believes nothing: sizes of files, checksums of headers and what they say are checked
 * against the manifest; each slice that is loaded is checked against its own checksum. */
#ifndef WORKER_CHECKPOINT_READ_H
#define WORKER_CHECKPOINT_READ_H

#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard.h"

#include <stdio.h>

struct checkpoint;

/* *out is yours. -ENOENT: it is not complete; -EINVAL, -EIO: it is damaged; in words with the
 * file. */
int checkpoint_open(const char *folder, struct checkpoint **out, struct error *err);
/* Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);
const struct manifest *checkpoint_manifest(const struct checkpoint *checkpoint); /* lent */

/* Is it the state that `expected` names (job and epoch aside), of this model? -EINVAL in words. */
int checkpoint_expect(const struct checkpoint *checkpoint, const struct manifest_origin *expected,
                      const struct graph *graph, struct error *err);

/* Fill out, row-major, with the box of one part of a tensor. -ENODATA: some of it is in no shard;
 * -EIO: a slice is not what was written. */
int checkpoint_load(struct checkpoint *checkpoint, const char *tensor, enum checkpoint_part part,
                    const struct box *box, float *out, struct error *err);

/* Read all of it, against every checksum, and say so, a line for each shard; `out` may be NULL.
 * Each element of each tensor must be there once. The first damage ends it, with its errno. */
int checkpoint_verify(const char *folder, FILE *out, struct error *err);

#endif
