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
#include "common/checkpoint/manifest.h"
#include "common/graph/box.h"

/* What the optimizer keeps of each weight. */
enum state_part { STATE_WEIGHT, STATE_FIRST, STATE_SECOND, STATE_PARTS };

struct shard_slice {
    char *tensor;
    enum state_part part;
    struct box box;         /* in the whole tensor */
    uint64_t offset, bytes; /* in the data of the shard */
    uint64_t checksum;
};

struct shard {
    struct shard_slice *slices; /* by offset; together they make up all of the data */
    size_t count;
    uint64_t start, bytes; /* of the data, in the file */
};

/* The beginning of a file with these slices, of *size bytes; the caller frees it. Offsets must
 * ascend from 0 without gaps. */
char *shard_print(const struct shard_slice *slices, size_t count, size_t *size);
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
struct slice_name slice_name(const char *tensor, enum state_part part);

/* Write the slices, whose data lie one after another at `data`, and set their checksums. *out
 * describes the file; the caller frees its name. -EEXIST: the file exists already; -ENOSPC, -EFBIG
 * and others: nothing is left of it. */
int shard_write(const char *folder, int rank, struct shard_slice *slices, size_t count,
                const void *data, struct manifest_shard *out, struct error *err);

/* A shard on disk, with a header that has been checked. Before opening, fd must be -1 and
 * everything else zero. */
struct shard_file {
    char *path;
    int fd;
    struct shard shard; /* contents of the header */
};

/* Open a shard; `told` is its entry in the manifest. -EIO: it is damaged; -EINVAL: its header is
 * wrong; otherwise errors of the disk. The caller closes it even after an error. */
int shard_open(const char *folder, const struct manifest_shard *told, struct shard_file *file,
               struct error *err);
void shard_close(struct shard_file *file);
/* Read `size` bytes from `offset` of the file. -EIO: the file ends before that. */
int shard_read(const struct shard_file *file, void *out, size_t size, uint64_t offset,
               struct error *err);
/* Read all of the file, and compare its checksum. -EIO: it is damaged. */
int shard_verify(const struct shard_file *file, const struct manifest_shard *told,
                 struct error *err);

#endif
