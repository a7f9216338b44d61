/* polish.h - the best plan by simulation, changed in one thing after another while that helps. */
#ifndef COORDINATOR_PLANNER_EXACT_POLISH_H
#define COORDINATOR_PLANNER_EXACT_POLISH_H

#include "coordinator/planner/exact/hunt.h"

/* Appends what is faster than `from`, a plan of *out that was simulated and fits. *runs: of blocks
 * that may be simulated; what was is taken off. */
int polish_run(struct hunt *hunt, const struct plan *from, int64_t *runs,
               struct planner_result *out, struct error *err);

#endif
