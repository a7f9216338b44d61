/* model.h - model families: from a job's model settings to the graph.
 *
 * To add a family, write its file here and add its row in models.c. */
#ifndef COMMON_MODELS_MODEL_H
#define COMMON_MODELS_MODEL_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/config/job.h"
#include "common/graph/graph.h"

/* The section `model` of a job, and what it computes with. */
struct model_config {
    const char *family;
    int64_t layers, hidden, heads, seq, vocab;
    int64_t ffn;       /* width of the MLP; 0: the family's usual multiple of hidden */
    int64_t head_dim;  /* 0: hidden / heads */
    int64_t kv_heads;  /* 0: as many as heads */
    int64_t patch;     /* edge of an image patch in pixels; only families that read images */
    double epsilon;    /* of norms; 0: 1e-5 */
    double rope_theta; /* base of rotary positions; 0: 10000 */
    struct job_rope_scaling rope_scaling;
    enum answer tied;     /* is the head tied to the embedding? ANSWER_NONE: the family's default */
    enum element element; /* element type of activations and of weights in computation */
};

struct huggingface;

/* One model family. */
struct model {
    const char *family;
    /* Build the graph; it belongs to the caller. layers, hidden, heads, seq and vocab have been
     * checked to be positive. -EINVAL when sizes do not fit together; the text names both. */
    int (*build)(const struct model_config *config, struct graph **out, struct error *err);
    bool ties;             /* the configuration decides if the head is tied; else the family does */
    const char *untrained; /* why it can be planned but not trained yet; NULL: it can be */
    const struct huggingface *huggingface; /* how transformers stores it; NULL: not described */
};

/* The configuration that a job asks for. Borrows the job's strings. */
struct model_config model_config_of(const struct job_config *job);

extern const struct model *const models[]; /* ends with NULL */
/* NULL when there is no such family. */
const struct model *model_find(const char *family);

/* Check the configuration and build the graph, which belongs to the caller. -EINVAL when a size is
 * not positive, sizes do not fit together, the family is unknown (the text lists those there are),
 * or a setting is given that the family does not use. */
int model_build(const struct model_config *config, struct graph **out, struct error *err);
/* 0 when the model can be trained; -ENOSYS when it can only be planned, because the family is not
 * finished or an operation of the graph has no kernel yet. */
int model_runs(const struct model_config *config, const struct graph *graph, struct error *err);

#endif
