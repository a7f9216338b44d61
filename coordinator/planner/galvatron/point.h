/* point.h - a point of Galvatron's space, which fixes everything but the strategies of the layers;
 * and the best strategies by Galvatron's own formula. */
#ifndef COORDINATOR_PLANNER_GALVATRON_POINT_H
#define COORDINATOR_PLANNER_GALVATRON_POINT_H

#include "coordinator/planner/galvatron/cost.h"

#define GALVATRON_STRATEGIES_MAX 128

struct galvatron_point {
    const struct galvatron_problem *problem; /* lent, as is the plan */
    /* Provides stages and micro-batches; embedding and head are the first and the last block. The
     * strategies of its blocks are not read. */
    const struct plan *plan;
    int devices, tensor; /* of a stage; of the embedding */
    struct galvatron_strategy strategies[GALVATRON_STRATEGIES_MAX]; /* that a layer may have */
    int strategy_count;
};

/* Seconds of the best step, with the index of each layer's strategy in `strategies`. Infinity, and
 * nothing is written: none fits the memory, or the profile lacks what is needed. */
double galvatron_point_solve(const struct galvatron_point *point, int *strategies);

#endif
