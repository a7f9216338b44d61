/* shard.h - one file of a checkpoint: slices of tensors in the safetensors format.
 *
 * The file has 8 bytes with the length of the header (little-endian), the header, and the data. The
 * header is JSON that gives dtype, shape and place of every entry; the data are all entries, one
 * after another. An entry is a slice of one part of a weight, in f32. It is named after the weight,
 * with ".exp_avg" or ".exp_avg_sq" appended for moments. The header's "__metadata__" has each
 * slice's place in the whole tensor and its checksum, so that a shard can be read by itself, and
 * any reader of safetensors can read it.
 *
 * Checksums are 64-bit XXH3: they detect damage by disks and copies, not forgery. */
#ifndef WORKER_CHECKPOINT_SHARD_H
#define WORKER_CHECKPOINT_SHARD_H

#include "common/base/error.h"
#include "common/graph/shape.h"

/* A longer header is not accepted; this is the format's own limit. */
#define SHARD_HEADER_MAX ((uint64_t)100 << 20)

/* What the optimizer keeps of each weight. */
enum checkpoint_part { CHECKPOINT_WEIGHT, CHECKPOINT_FIRST, CHECKPOINT_SECOND, CHECKPOINT_PARTS };

struct slice {
    char *tensor;
    enum checkpoint_part part;
    struct box box;         /* in the whole tensor */
    uint64_t offset, bytes; /* in the data of the shard */
    uint64_t checksum;
};

struct shard {
    struct slice *slices; /* by offset; together they make up all of the data */
    size_t count;
    uint64_t start, bytes; /* of the data, in the file */
};

/* The beginning of a file with these slices, of *size bytes; the caller frees it. Offsets must
 * ascend from 0 without gaps. */
char *shard_print(const struct slice *slices, size_t count, size_t *size);
/* Parse a header's JSON, which is followed by `bytes` of data. -EINVAL: it does not describe them,
 * err says why. *out is the caller's to finish. */
int shard_parse(const char *json, size_t length, uint64_t bytes, struct shard *out,
                struct error *err);
/* Free what the shard holds, and zero it. */
void shard_finish(struct shard *shard);

/* The name of a slice for a message: "weight 'layers.0.fc1.weight'", "first moment of '...'". */
struct slice_name {
    char text[160];
};
struct slice_name slice_name(const char *tensor, enum checkpoint_part part);

#endif
