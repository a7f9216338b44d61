/* update.h - a step of the optimizer on what a rank holds, so that it can be finished by whoever
 * has the state when the process that began it is dead. */
#ifndef WORKER_INTERPRETER_UPDATE_H
#define WORKER_INTERPRETER_UPDATE_H

#include "worker/estate/estate.h"
#include "worker/interpreter/optimizer.h"
#include "worker/kernels/kernels.h"

/* Lent. */
struct update_rule {
    const struct device *device;
    const struct optimizer *optimizer;
    const struct graph *graph;
};

/* What all ranks know of a step when they apply it. */
struct update_step {
    uint64_t step;        /* counts from 0 */
    double loss, norm;    /* of the metrics; norm: before clipping */
    bool skipped;         /* one of them is not finite: nothing is changed */
    double rate;          /* of learning */
    const float *metrics; /* where the device reads them */
};

struct update_slice {
    int tensor;
    float *parameter, *gradient, *first, *second;
    size_t count;
};

/* The metrics are lent. */
struct update_step update_step_of(const struct optimizer *optimizer, uint64_t step,
                                  const float metrics[METRICS]);
/* Of metrics that the host has not seen, in the memory of the device. */
struct update_step update_step_unseen(const struct optimizer *optimizer, uint64_t step,
                                      const float *metrics);
/* All at once where the device can. */
void update_slices(const struct update_rule *rule, const struct update_step *step,
                   const struct update_slice *slices, size_t count);
/* Share number `index` of a holding that stands applying. */
void update_share(const struct update_rule *rule, const struct update_step *step,
                  struct holding *holding, size_t index);
/* Apply the next step of its epoch, which another rank has finished with these metrics, to all
 * shares of a holding that is armed. */
void update_holding(const struct update_rule *rule, struct holding *holding,
                    const float metrics[METRICS]);
/* The same for what was begun by a process that is dead. */
void update_finish(const struct update_rule *rule, struct holding *holding);

#endif
