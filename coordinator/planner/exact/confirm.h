/* confirm.h - simulates the plans that a hunt found, picks the best of them, and certifies how far
 * it can be from the optimum. */
#ifndef COORDINATOR_PLANNER_EXACT_CONFIRM_H
#define COORDINATOR_PLANNER_EXACT_CONFIRM_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/exact/hunt.h"

/* Simulate the plans found, close the gap to the lower bound as far as the hunt's limits allow, and
 * record the certificate in the best plan's predicted values. */
int confirm_run(struct hunt *hunt, struct planner_result *out, struct error *err);
/* Explore the trade-off between step time, memory and devices: repeat the hunt on `least` to `most`
 * devices with less and less memory, and record the results as the best plan's alternatives. */
int confirm_frontier(struct hunt *hunt, int least, int most, struct planner_result *out,
                     struct error *err);

#endif
