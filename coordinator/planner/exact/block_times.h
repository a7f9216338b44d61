/* block_times.h - what a block takes on a stage whose devices are unlike, at least, however they
 * divide it: by what each of them alone would take for it, and has to do of it. Seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_BLOCK_TIMES_H
#define COORDINATOR_PLANNER_EXACT_BLOCK_TIMES_H

#include "coordinator/planner/costs/block_costs.h"

#define ACCOUNTS_MAX (SITE_RANKS_MAX + 1)

/* A block of a micro-batch of so many samples. */
struct block_work {
    int block;
    int64_t samples;
    enum recompute recompute;
};

/* Its forward and backward. */
struct block_times {
    double formula_s; /* by the formula: on the device that is longest at it */
    /* By programs that may be another device for another block: so accounts are kept over blocks,
     * one of each rank that stands for others, and one of all of them by weights. The stage's
     * devices take no less than whichever is most. */
    double accounts_s[ACCOUNTS_MAX];
    double least_s; /* the rank that takes least, whichever that is */
};

/* What one device of the request takes for all of it. */
struct part_cost block_times_alone(struct costs *costs, int device, struct block_work work);
/* Weights of the ranks that stand for all, by which the last account adds up what they take: the
 * faster one is at this work, the more; SITE_RANKS_MAX at most. They sum to 1. */
void block_times_weights(struct costs *costs, const struct site *site, struct block_work work,
                         double *weights);
/* weights: of the stage, the same for all blocks. */
struct block_times block_times_find(struct costs *costs, const struct site *site,
                                    struct block_work work, const double *weights);

#endif
