/* polish.h - local search by simulation: changes the best plan in one respect after another as long
 * as that helps. */
#ifndef COORDINATOR_PLANNER_EXACT_POLISH_H
#define COORDINATOR_PLANNER_EXACT_POLISH_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/exact/hunt.h"

/* Append plans that are faster than `from`, a simulated plan of *out that fits. *runs is the budget
 * of block runs to simulate and is reduced by what was used. */
int polish_run(struct hunt *hunt, const struct plan *from, int64_t *runs,
               struct planner_result *out, struct error *err);

#endif
