/* plans.h - a spread of plans for one job: the same for every model and machine, so that two runs
 * compare the same plans, and no prediction has a say in which ones are looked at. */
#ifndef BENCH_REGRET_PLANS_H
#define BENCH_REGRET_PLANS_H

#include "common/graph/graph.h"
#include "common/plan/plan.h"

#define PLANS_MAX 24

/* Those of the spread for so many ranks (2 or 4), or fewer, that the model can be divided by;
 * yours. Returns how many. */
size_t plans_make(const struct graph *graph, int ranks, int batch, struct plan *out[PLANS_MAX]);

#endif
