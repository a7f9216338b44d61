/* optimizer.h - AdamW (Loshchilov and Hutter, arXiv 1711.05101): its settings, the schedule of its
 * rate, and its step on the slices that a rank holds.
 *
 * An update can be resumed: if the process that began it dies, whoever takes over the state can
 * finish it, with the same result (see the journal in worker/estate/estate.h). */
#ifndef WORKER_INTERPRETER_OPTIMIZER_H
#define WORKER_INTERPRETER_OPTIMIZER_H

#include "worker/estate/estate.h"
#include "worker/kernels/kernels.h"

#include <stdint.h>

struct optimizer {
    double rate;            /* the peak learning rate */
    uint64_t warmup, steps; /* linear rise, then a cosine down to a tenth of rate at the end */
    double beta1, beta2, epsilon;
    double decay; /* decoupled weight decay, multiplied by the rate; for tensors that decay */
    double clip;  /* largest L2 norm of the whole gradient; 0: no clipping */
};

/* The learning rate of step `step`, counted from 0. */
double optimizer_rate(const struct optimizer *optimizer, uint64_t step);

/* What an update needs to know of the job. All lent. */
struct update_rule {
    const struct device *device;
    const struct optimizer *optimizer;
    const struct graph *graph;
};

/* What all ranks know about a step when they apply it. */
struct update_step {
    uint64_t step;        /* counts from 0 */
    double loss, norm;    /* as in step_result */
    bool skipped;         /* loss or norm is not finite: nothing is changed */
    double rate;          /* learning rate */
    const float *metrics; /* METRICS floats that the device reads; lent */
};

/* Corresponding elements of one parameter, its gradient and its moments; all f32. */
struct update_slice {
    int tensor;
    float *parameter, *gradient, *first, *second;
    size_t count;
};

/* The step that these metrics describe. They are lent, and the device must be able to read them. */
struct update_step update_step_of(const struct optimizer *optimizer, uint64_t step,
                                  const float metrics[METRICS]);
/* The same for metrics that only the device has: loss and norm are unknown (0), skipped is false,
 * and the device itself decides whether to skip. */
struct update_step update_step_unseen(const struct optimizer *optimizer, uint64_t step,
                                      const float *metrics);
/* Update slices, in one call per 64 if the device offers that. */
void update_slices(const struct update_rule *rule, const struct update_step *step,
                   const struct update_slice *slices, size_t count);
/* Update share `index` of a holding whose standing is `applying`, piece by piece. */
void update_share(const struct update_rule *rule, const struct update_step *step,
                  struct holding *holding, size_t index);
/* For a holding that is armed: apply the step that another rank has finished with these metrics, to
 * all shares. */
void update_holding(const struct update_rule *rule, struct holding *holding,
                    const float metrics[METRICS]);
/* Finish an update that was begun by a process that is gone. Does nothing if none was. */
void update_finish(const struct update_rule *rule, struct holding *holding);

#endif
