/* shard.h - one file of a checkpoint: slices of tensors in the safetensors format.
 *
 * A header and the data: 8 bytes of its length (little-endian), JSON that names dtype, shape and
 * place of every entry, then all entries one behind the other. An entry is a slice of one part of
 * a weight, f32; its name is the weight's, with ".exp_avg" or ".exp_avg_sq" behind it for the
 * moments. Where in the whole tensor a slice lies, and its checksum, is in the header's
 * "__metadata__", so that a shard can be read by itself and any reader of safetensors reads it.
 *
 * Checksums are XXH3, 64 bits: they find what a disk or a copy has damaged, and no forger. */
#ifndef WORKER_CHECKPOINT_SHARD_H
#define WORKER_CHECKPOINT_SHARD_H

#include "common/base/error.h"
#include "common/graph/shape.h"

/* A header that claims to be longer is not believed; it is the format's own limit. */
#define SHARD_HEADER_MAX ((uint64_t)100 << 20)

/* What an optimizer keeps of each weight. */
enum checkpoint_part { CHECKPOINT_WEIGHT, CHECKPOINT_FIRST, CHECKPOINT_SECOND, CHECKPOINT_PARTS };

struct slice {
    char *tensor;
    enum checkpoint_part part;
    struct box box;         /* of the whole tensor */
    uint64_t offset, bytes; /* in the shard's data */
    uint64_t checksum;
};

struct shard {
    struct slice *slices; /* by offset; together they are all of the data */
    size_t count;
    uint64_t start, bytes; /* of the data in the file */
};

/* The slices as the beginning of a file, *size bytes, yours; offsets must ascend without a gap
 * from 0. */
char *shard_print(const struct slice *slices, size_t count, size_t *size);
/* Understand a header's JSON; `bytes` of data follow it. -EINVAL: it does not describe them, and
 * why. *out is yours to finish. */
int shard_parse(const char *json, size_t length, uint64_t bytes, struct shard *out,
                struct error *err);
void shard_finish(struct shard *shard);

/* "weight 'layers.0.fc1.weight'", "first moment of '...'" for a sentence. */
struct slice_name {
    char text[160];
};
struct slice_name slice_name(const char *tensor, enum checkpoint_part part);

#endif
