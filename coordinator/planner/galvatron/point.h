/* point.h - a point of Galvatron's space, which has everything but the strategies of the
 * layers; and the best of these by Galvatron's own formula. */
#ifndef COORDINATOR_PLANNER_GALVATRON_POINT_H
#define COORDINATOR_PLANNER_GALVATRON_POINT_H

#include "coordinator/planner/galvatron/cost.h"

#define GALVATRON_STRATEGIES_MAX 128

struct galvatron_point {
    const struct galvatron_problem *problem; /* lent, and so is the plan */
    /* Stages and micro-batches; embedding and head are the first block and the last. What blocks
     * have is not read. */
    const struct plan *plan;
    int devices, tensor; /* of a stage; of the embedding */
    struct galvatron_strategy strategies[GALVATRON_STRATEGIES_MAX]; /* that a layer may have */
    int strategy_count;
};

/* Seconds of the best step, and in strategies (layers) which one each layer has; infinity, and
 * nothing is written: none fits the memory, or the profile lacks what it takes. */
double galvatron_point_solve(const struct galvatron_point *point, int *strategies);

#endif
