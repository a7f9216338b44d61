/* space.h - the best plan of Galvatron's space by its own formula: layers are divided evenly into
 * stages, with the remainder in the last one; degrees are powers of two; each layer has data or
 * tensor parallelism, zero 0, 2 or 3 and optional full recomputation; embedding and head are
 * alike. */
#ifndef COORDINATOR_PLANNER_GALVATRON_SPACE_H
#define COORDINATOR_PLANNER_GALVATRON_SPACE_H

#include "coordinator/planner/galvatron/cost.h"

/* Search on all of `devices`, which must be a power of two. NULL: no plan fits or is legal; the
 * message says which. The caller owns the plan, whose time is in predicted.formula_s. */
struct plan *galvatron_best(const struct galvatron_problem *problem, const struct graph *graph,
                            int devices, int64_t batch, struct error *err);

#endif
