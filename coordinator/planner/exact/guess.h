/* guess.h - a good first plan of a point: the same roles, zero and recomputation for all blocks,
 * and stages balanced in time. Exact search has to beat it. */
#ifndef COORDINATOR_PLANNER_EXACT_GUESS_H
#define COORDINATOR_PLANNER_EXACT_GUESS_H

#include "coordinator/planner/exact/instance.h"

/* The plan, owned by the caller, with its step time by the formula in *formula_s; NULL and infinity
 * if no such plan fits. */
struct plan *guess_plan(struct instance *instance, double *formula_s);

#endif
