/* space.h - the best plan of Galvatron's space by its own formula: layers divided evenly
 * into stages, what remains to the last one; degrees that are powers of two; data or tensor
 * parallelism, zero 0, 2 or 3 and full recomputation per layer; embedding and head alike. */
#ifndef COORDINATOR_PLANNER_GALVATRON_SPACE_H
#define COORDINATOR_PLANNER_GALVATRON_SPACE_H

#include "coordinator/planner/galvatron/cost.h"

/* On all of `devices`, of which there is a power of two. NULL: no plan fits or is legal; the
 * sentence says which. The plan is the caller's, with its time as predicted.formula_s. */
struct plan *galvatron_best(const struct galvatron_problem *problem, const struct graph *graph,
                            int devices, int64_t batch, struct error *err);

#endif
