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

/* Tokens of theirs beyond ours that are taken for padding, which brings a vocabulary to a multiple
 * of some number. Larger ones are of another tokenizer. */
#define HUGGINGFACE_PADDING_MAX 1023

/* A key of config.json that decides what the model computes. */
struct huggingface_key {
    const char *key;
    const char *standard; /* what transformers takes for a missing one, as JSON; NULL: nothing */
    bool nullable;        /* it may be null; else that is refused, as it is there */
    bool read;            /* only settle() looks at it; else it is compared */
    char dim;             /* it is the size of this dim, of which they may have more; 0: of none */
    int64_t more;         /* how many more at most; 0: any number */
    const char *as; /* it is another name of that key, and counts if both are there; or NULL */
};

/* Keys of config.json by what they do. In each list there are those that a release of transformers
 * writes or reads. What is in none is refused unless it is null, because a later release may have
 * given it a meaning. Lists end with NULL, and may be NULL. */
struct huggingface_keys {
    const struct huggingface_key *compared; /* ends with an entry without a key */
    const char *const *nothing;             /* they change no output, whatever they say */
    const char *const *refused;             /* what they say is not supported, unless it is null */
};

/* A model_type of transformers, and its keys besides those of its family and those of all. */
struct huggingface_type {
    const char *model_type;
    struct huggingface_keys keys;
};

/* What a family's file provides. */
struct huggingface {
    const struct huggingface_row *rows; /* ends with a row without names */
    /* Before the names of all tensors but the head's; files of a model without its head omit it. */
    const char *prefix;
    /* The config.json to export; owned by the caller. */
    json_t *(*config)(const struct job_model *config, const struct graph *graph);
    /* The types that can be read; ends with one without a name. */
    const struct huggingface_type *types;
    struct huggingface_keys keys; /* that all of them have */
    /* Do what transformers does with a config.json once missing keys have their standards: fill in
     * what follows from other keys. And write what makes no difference to our model as ours does:
     * what has several spellings, or a window that is not shorter than a sample. */
    void (*settle)(json_t *theirs, const struct job_model *config);
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
    char *name;       /* owned */
    const char *bare; /* in it, without the family's prefix */
    int axes;
    int64_t shape[DIMS_MAX];
    char first;       /* the dim of the first axis; 0: several */
    const char *twin; /* a tensor of this name in the file is a copy of this one; NULL: none */
    struct huggingface_part parts[HUGGINGFACE_PARTS];
    int part_count;
};

/* List all tensors that transformers stores for this model; release with huggingface_free().
 * -ENOSYS when it does not know the family or has no tensor for one of the weights. */
int huggingface_tensors(const struct job_model *config, const struct graph *graph,
                        struct huggingface_tensor **out, size_t *count, struct error *err);
void huggingface_free(struct huggingface_tensor *tensors, size_t count);
/* The config.json that describes this model, owned by the caller; no token begins or ends texts.
 * The family must have a `huggingface` table; the same holds for what follows. */
json_t *huggingface_config(const struct job_model *config, const struct graph *graph);
/* Its text, freed by the caller. */
char *huggingface_print(const json_t *config);
/* Check that a parsed config.json describes this model. *sizes are those of dims of which theirs
 * may have more than ours: positions and tokens; 0: they are not said. -EINVAL, naming the first
 * key that does not agree, or that is not known. */
int huggingface_compare(const struct job_model *config, const struct graph *graph,
                        const json_t *theirs, struct sizes *sizes, struct error *err);

/* For settle(): if the key has one of these words, which ends with NULL, write `ours` for it. */
void huggingface_settle_word(json_t *theirs, const char *key, const char *const *words,
                             const char *ours);

enum huggingface_effect { EFFECT_COMPARED, EFFECT_NOTHING, EFFECT_REFUSED, EFFECT_UNKNOWN };
/* In which list a key is for this type, one of the family's. */
enum huggingface_effect huggingface_effect(const struct huggingface *family,
                                           const struct huggingface_type *type, const char *key);

/* The size of a dim of one of our weights, for `config`; 0: there is none. */
int64_t huggingface_size(const struct graph *graph, const char *weight, char dim);
/* The number of elements of one of their tensors. */
int64_t huggingface_count(const struct huggingface_tensor *tensor);
/* Copy all of one of our weights, row-major, to its place in one of their tensors. */
void huggingface_put(const struct huggingface_part *part, const float *ours, float *theirs);

#endif
