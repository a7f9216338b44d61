/* plans.h - a fixed spread of plans for a job: the same for every model and machine, so that two
 * runs compare the same plans, and predictions do not influence which plans are examined. */
#ifndef BENCH_REGRET_PLANS_H
#define BENCH_REGRET_PLANS_H

#include "common/graph/graph.h"
#include "common/plan/plan.h"

#define PLANS_MAX 24

/* Make the plans of the spread that fit the model, for up to `ranks` ranks (2 or 4). Returns how
 * many; the caller owns them. */
size_t plans_make(const struct graph *graph, int ranks, int batch, struct plan *out[PLANS_MAX]);

#endif
