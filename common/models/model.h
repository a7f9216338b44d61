/* model.h - model families: from a job's model settings to the graph.
 *
 * To add a family, write its file here and add its row in models.c. */
#ifndef COMMON_MODELS_MODEL_H
#define COMMON_MODELS_MODEL_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/config/job.h"
#include "common/graph/graph.h"

struct huggingface;

/* One model family. */
struct model {
    const char *family;
    /* Build the graph; it belongs to the caller. layers, hidden, heads, seq and vocab have been
     * checked to be positive. -EINVAL when sizes do not fit together; the text names both. */
    int (*build)(const struct job_model *config, struct graph **out, struct error *err);
    bool ties;             /* the configuration decides if the head is tied; else the family does */
    const char *untrained; /* why it can be planned but not trained yet; NULL: it can be */
    const struct huggingface *huggingface; /* how transformers stores it; NULL: not described */
};

extern const struct model *const models[]; /* ends with NULL */
/* NULL when there is no such family. */
const struct model *model_find(const char *family);

/* Check the configuration and build the graph, which belongs to the caller; activations, and
 * weights in computation, are of type `element`. -EINVAL when a size is not positive, sizes do not
 * fit together, the family is unknown (the text lists those there are), or a setting is given that
 * the family does not use. */
int model_build(const struct job_model *config, enum element element, struct graph **out,
                struct error *err);
/* 0 when the model can be trained; -ENOSYS when it can only be planned, because the family is not
 * finished or an operation of the graph has no kernel yet. */
int model_runs(const struct job_model *config, const struct graph *graph, struct error *err);

#endif
