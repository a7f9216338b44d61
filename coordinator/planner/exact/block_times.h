/* block_times.h - lower bounds on the time of a block on a stage of unlike devices, for every way
 * to divide it: from the time each device would take for the block alone and from its least share.
 * In seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_BLOCK_TIMES_H
#define COORDINATOR_PLANNER_EXACT_BLOCK_TIMES_H

#include "coordinator/planner/costs/costs.h"

#define ACCOUNTS_MAX (SITE_RANKS_MAX + 1)

/* A block for one micro-batch of this many samples. */
struct block_work {
    int block;
    int64_t samples;
    enum recompute recompute;
};

/* Forward and backward of the block. */
struct block_times {
    double formula_s; /* by the formula, which counts the slowest device of each block */
    /* In simulated programs the slowest device may differ from block to block, so time is summed
     * over blocks per account: one account for each representative rank of the site, and a last one
     * for their weighted mean. The stage takes no less than its largest account. */
    double accounts_s[ACCOUNTS_MAX];
    double least_s; /* of the fastest rank, whichever it is */
};

/* What the given device of the request takes for the whole block alone. */
struct part_cost block_times_alone(struct costs *costs, int device, struct block_work work);
/* Weights for the mean account, one per representative of the site (SITE_RANKS_MAX at most), which
 * sum to 1. They are proportional to the ranks' speeds at this work. */
void block_times_weights(struct costs *costs, const struct site *site, struct block_work work,
                         double *weights);
/* Compute the bounds. All blocks of a stage must use the same weights. */
struct block_times block_times_find(struct costs *costs, const struct site *site,
                                    struct block_work work, const double *weights);

#endif
