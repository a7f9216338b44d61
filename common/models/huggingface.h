/* huggingface.h - a family as the package transformers of Hugging Face keeps it: what it calls the
 * weights, how they lie in its tensors, and what its config.json says. A family's file has the
 * table; what is done by it is here. */
#ifndef COMMON_MODELS_HUGGINGFACE_H
#define COMMON_MODELS_HUGGINGFACE_H

#include "common/models/model.h"

#include <jansson.h>

#define HUGGINGFACE_PARTS 3 /* of ours in one of theirs */

/* One of their tensors: one of ours, or several beside each other along its last axis. '#' in a
 * name stands for the number of a layer: such a row holds once for each. */
struct huggingface_row {
    const char *theirs;
    const char *axes; /* the dims of each of ours in their order, a blank between axes: "h nd" */
    const char *ours[HUGGINGFACE_PARTS];
    bool untied;      /* of a model that is not tied alone */
    const char *twin; /* of a tied model: its files may have this one a second time, by that name */
};

/* Of a config.json. */
struct huggingface_key {
    const char *key;
    const char *otherwise; /* JSON: what theirs is taken for that lacks it; NULL: ours */
    const char *unless;    /* a key that says it in another place: then it may lack */
};

/* Another model_type of the same model, where a key has this value, in JSON. */
struct huggingface_alias {
    const char *model_type;
    struct huggingface_key key;
    const char *value;
};

struct huggingface {
    const struct huggingface_row *rows; /* behind them one without names */
    /* What is to be in config.json; the caller's. */
    json_t *(*config)(const struct model_config *config, const struct graph *graph);
    /* Of that, what another config.json must not say otherwise: the rest changes no output, or is
     * in the shapes of the weights. Behind them one without a key. */
    const struct huggingface_key *binding;
    const struct huggingface_alias *aliases; /* behind them one without names; NULL: none */
};

/* Where the elements of one of ours lie in one of theirs: step[i] elements apart along its dim i.
 */
struct huggingface_part {
    int tensor; /* of the graph */
    struct box whole;
    int64_t first, step[DIMS_MAX];
};

struct huggingface_tensor {
    char *name;
    int axes;
    int64_t shape[DIMS_MAX];
    bool of_places;   /* the first axis: one that is longer has ours as well */
    const char *twin; /* where there is a tensor of that name it is this one; NULL: none */
    struct huggingface_part parts[HUGGINGFACE_PARTS];
    int part_count;
};

/* All of theirs, for huggingface_free. -ENOSYS: they have no such family, or nothing for a weight
 * of it. */
int huggingface_tensors(const struct model_config *config, const struct graph *graph,
                        struct huggingface_tensor **out, size_t *count, struct error *err);
void huggingface_free(struct huggingface_tensor *tensors, size_t count);
/* config.json of a family that they have, yours. */
char *huggingface_config(const struct model_config *config, const struct graph *graph);
/* Does a config.json describe this model? -EINVAL: what in it is another's. */
int huggingface_compare(const struct model_config *config, const struct graph *graph,
                        const json_t *theirs, struct error *err);

int64_t huggingface_count(const struct huggingface_tensor *tensor); /* elements */
/* Put the whole of one of ours, row-major, into one of theirs. */
void huggingface_put(const struct huggingface_part *part, const float *ours, float *theirs);

#endif
