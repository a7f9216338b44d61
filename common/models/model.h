/* model.h - from a model's configuration to its graph: one file per family, one row in
 * models.c. */
#ifndef COMMON_MODELS_MODEL_H
#define COMMON_MODELS_MODEL_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/config/job.h"
#include "common/graph/graph.h"

struct model_config {
    const char *family;
    int64_t layers, hidden, heads, seq, vocab;
    int64_t ffn;       /* 0: the family's usual multiple of hidden */
    int64_t head_dim;  /* 0: hidden / heads */
    int64_t kv_heads;  /* 0: as many as heads */
    int64_t patch;     /* pixels; families that read images */
    double epsilon;    /* of norms; 0: 1e-5 */
    double rope_theta; /* base of rotary positions; 0: 10000 */
    struct job_rope_scaling rope_scaling;
    enum answer tied; /* is the head's weight the embedding's table? None: as the family has it */
    enum element element; /* that it computes with */
};

struct huggingface;

struct model {
    const char *family;
    /* Sizes are positive. -EINVAL: they do not go together; the sentence names both. */
    int (*build)(const struct model_config *config, struct graph **out, struct error *err);
    bool ties;             /* its head where the configuration says so; else always, or never */
    const char *untrained; /* why it can be planned and not be trained yet; NULL: it can */
    const struct huggingface *huggingface; /* how transformers has it; NULL: it is not said */
};

/* As a job says it. */
struct model_config model_config_of(const struct job_config *job);

extern const struct model *const models[]; /* ends with NULL */
/* NULL: there is none. */
const struct model *model_find(const char *family);

/* -EINVAL also for an unknown family, naming those there are. */
int model_build(const struct model_config *config, struct graph **out, struct error *err);
/* -ENOSYS: what a plan can be made for cannot be run yet: the family lacks something, or an
 * operation of the graph has no kernel. */
int model_runs(const struct model_config *config, const struct graph *graph, struct error *err);

#endif
