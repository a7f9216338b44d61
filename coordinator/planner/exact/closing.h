/* closing.h - closes the gap of a small space: every plan whose own lower bound is below the best
 * simulated step is simulated as well, in the order of the bounds. */
#ifndef COORDINATOR_PLANNER_EXACT_CLOSING_H
#define COORDINATOR_PLANNER_EXACT_CLOSING_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/exact/hunt.h"

/* Whether the space has few enough plans to enumerate them all. */
bool closing_is_small(struct hunt *hunt);
/* Append plans that are faster than *best_s, which is updated, and raise *least_s, the lower bound
 * on all plans, as far as the hunt's limits allow. */
int closing_run(struct hunt *hunt, double *best_s, double *least_s, struct planner_result *out,
                struct error *err);

#endif
