/* manifest.h - describes a checkpoint: DIRECTORY/manifest.json, which is written last.
 *
 * It says which step of which training the checkpoint holds, names the whole tensors of the model,
 * and lists the shards with sizes and checksums. Which slices a shard holds is in the shard's own
 * header, whose checksum is here. So a manifest stays small however many ranks there are, and a
 * reader relies on nothing that has no checksum. */
#ifndef COMMON_CHECKPOINT_MANIFEST_H
#define COMMON_CHECKPOINT_MANIFEST_H

#include "common/base/error.h"
#include "common/graph/graph.h"

#define MANIFEST_NAME "manifest.json"

/* A shard's file, as it was written. */
struct manifest_shard {
    char *file;
    uint64_t size, checksum;
    uint64_t header; /* checksum of everything before the data */
};

struct manifest_tensor {
    char *name;
    struct box whole;
};

/* A file that the training read, and a hash of its contents. */
struct manifest_file {
    char *path;
    uint64_t size, hash;
};

/* Which training, and how far. */
struct manifest_origin {
    const char *job;
    const char *spec; /* the text of its job file; NULL: a release before 0.3 did not write it */
    uint64_t epoch, step;              /* step: number of finished steps */
    uint64_t seed;                     /* for weights and the order of samples */
    uint64_t batch;                    /* samples per step */
    uint64_t samples;                  /* used so far: the place in the order of samples */
    const struct manifest_file *files; /* what it learns from; NULL: that was not written */
    size_t file_count;
};

struct manifest {
    struct manifest_origin origin; /* here it owns its texts and files */
    struct manifest_tensor *tensors;
    size_t tensor_count;
    struct manifest_shard *shards;
    size_t shard_count, shard_capacity;
};

/* Initialize for a model, without shards; to be finished. The origin is copied. */
void manifest_init(struct manifest *manifest, const struct manifest_origin *origin,
                   const struct graph *graph);
/* Free what the manifest holds, and zero it. */
void manifest_finish(struct manifest *manifest);
/* Add a shard, copying the name of its file. */
void manifest_add(struct manifest *manifest, const struct manifest_shard *shard);
/* Hash of names, shapes and dtype of the tensors. */
uint64_t manifest_fingerprint(const struct manifest *manifest);

/* Write the manifest into a folder, durably. -errno. */
int manifest_write(const struct manifest *manifest, const char *folder, struct error *err);
/* Read a manifest; *out is the caller's to finish. -ENOENT: there is none, so the folder is no
 * complete checkpoint; -EINVAL: it is malformed, err says how. */
int manifest_read(const char *folder, struct manifest *out, struct error *err);
/* Check that it describes this model. -EINVAL with the first difference. */
int manifest_compare(const struct manifest *manifest, const struct graph *graph, struct error *err);

#endif
