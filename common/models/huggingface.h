/* huggingface.h - import and export in the format of Hugging Face's transformers package: which of
 * its tensors hold our weights, in which layout, and what its config.json has to say.
 *
 * Every model family describes this in a table in its own file; the functions here interpret the
 * table. In this module "ours" is a weight of the graph, "theirs" a tensor of transformers. */
#ifndef COMMON_MODELS_HUGGINGFACE_H
#define COMMON_MODELS_HUGGINGFACE_H

#include "common/models/model.h"

#include <jansson.h>

#define HUGGINGFACE_PARTS 3 /* most of our weights in one of their tensors */

/* One of their tensors. It holds one of our weights, or several concatenated along its last axis.
 * A '#' in the names stands for the layer number; such a row applies to every layer. */
struct huggingface_row {
    const char *theirs;
    const char *axes; /* our dims in the order of their axes, a blank between axes: "h nd" */
    const char *ours[HUGGINGFACE_PARTS]; /* in the order of concatenation */
    bool untied;                         /* present only if the head is not tied */
    const char *twin; /* if the head is tied, files may repeat this tensor under that name */
};

/* A key of config.json that has to agree with our model. */
struct huggingface_key {
    const char *key;
    const char *otherwise; /* the value, as JSON, that a missing key stands for; NULL: ours */
    const char *unless;    /* if their config has this key, a missing `key` stands for ours */
};

/* Another model_type that is the same architecture, provided that `key` has `value` (JSON). */
struct huggingface_alias {
    const char *model_type;
    struct huggingface_key key;
    const char *value;
};

/* What a family's file provides. */
struct huggingface {
    const struct huggingface_row *rows; /* ends with a row without names */
    /* The config.json to export; owned by the caller. */
    json_t *(*config)(const struct job_model *config, const struct graph *graph);
    /* The keys on which a config.json to import has to agree with ours. All other keys have no
     * effect on the output or show in the shapes of the weights. Ends with an entry without a
     * key. */
    const struct huggingface_key *binding;
    const struct huggingface_alias *aliases; /* ends with an entry without names; NULL: none */
};

/* Where one of our weights lies in one of their tensors: its element at coordinates x is element
 * first + sum of x[i] step[i] of the tensor. */
struct huggingface_part {
    int tensor; /* our weight's number in the graph */
    struct box whole;
    int64_t first, step[DIMS_MAX];
};

/* One of their tensors, with its name and shape for a certain model. */
struct huggingface_tensor {
    char *name; /* owned */
    int axes;
    int64_t shape[DIMS_MAX];
    bool of_places;   /* the first axis is the position: a longer tensor contains ours as well */
    const char *twin; /* a tensor of this name in the file is a copy of this one; NULL: none */
    struct huggingface_part parts[HUGGINGFACE_PARTS];
    int part_count;
};

/* List all tensors that transformers stores for this model; release with huggingface_free().
 * -ENOSYS when it does not know the family or has no tensor for one of the weights. */
int huggingface_tensors(const struct job_model *config, const struct graph *graph,
                        struct huggingface_tensor **out, size_t *count, struct error *err);
void huggingface_free(struct huggingface_tensor *tensors, size_t count);
/* The text of config.json, to be freed by the caller; `end` is the token that ends a text, -1:
 * none. The family must have a `huggingface` table; the same holds for huggingface_compare(). */
char *huggingface_config(const struct job_model *config, const struct graph *graph, int32_t end);
/* Check that a parsed config.json describes this model. -EINVAL, naming the first key that does
 * not agree. */
int huggingface_compare(const struct job_model *config, const struct graph *graph,
                        const json_t *theirs, struct error *err);

/* The size of a dim of one of our weights, for `config`; 0: there is none. */
int64_t huggingface_size(const struct graph *graph, const char *weight, char dim);
/* The number of elements of one of their tensors. */
int64_t huggingface_count(const struct huggingface_tensor *tensor);
/* Copy all of one of our weights, row-major, to its place in one of their tensors. */
void huggingface_put(const struct huggingface_part *part, const float *ours, float *theirs);

#endif
