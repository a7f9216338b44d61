/* manifest.h - what a checkpoint is of: DIRECTORY/manifest.json, written last.
 *
 * It says which step of which training it holds, names the whole tensors of the model, and lists
 * the shards with their sizes and checksums. Which slices are in a shard says the shard's own
 * header, of which the checksum is here: so a manifest stays small however many ranks there are,
 * and nothing that a reader believes is without a checksum. */
#ifndef WORKER_CHECKPOINT_MANIFEST_H
#define WORKER_CHECKPOINT_MANIFEST_H

#include "common/base/error.h"
#include "common/graph/graph.h"

#define MANIFEST_NAME "manifest.json"

/* A file and what it was when it was written. */
struct manifest_shard {
    char *file;
    uint64_t size, checksum;
    uint64_t header; /* checksum of all before the data */
};

struct manifest_tensor {
    char *name;
    struct box whole;
};

/* What training it is and how far; also what a reader expects. */
struct manifest_origin {
    const char *job;
    uint64_t epoch, step; /* step: how many are finished */
    uint64_t seed;        /* of weights and samples */
    uint64_t batch;       /* samples of a step: step * batch were taken */
};

struct manifest {
    struct manifest_origin origin; /* job is the manifest's own */
    struct manifest_tensor *tensors;
    size_t tensor_count;
    struct manifest_shard *shards;
    size_t shard_count, shard_capacity;
};

/* Of this model, without shards; to be finished. */
void manifest_init(struct manifest *manifest, const struct manifest_origin *origin,
                   const struct graph *graph);
void manifest_finish(struct manifest *manifest);
/* The file's name is copied. */
void manifest_add(struct manifest *manifest, const struct manifest_shard *shard);
/* Names, shapes and dtype of the tensors. */
uint64_t manifest_fingerprint(const struct manifest *manifest);

/* Durable, in place of none. -errno. */
int manifest_write(const struct manifest *manifest, const char *folder, struct error *err);
/* *out is yours to finish. -ENOENT: the folder has none, so it is no complete checkpoint. -EINVAL:
 * what is wrong with it. */
int manifest_read(const char *folder, struct manifest *out, struct error *err);
/* Is it of this model? -EINVAL: the first difference. */
int manifest_compare(const struct manifest *manifest, const struct graph *graph, struct error *err);

#endif
