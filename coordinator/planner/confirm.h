/* confirm.h - what a hunt found, simulated: the last word, and the certificate. */
#ifndef COORDINATOR_PLANNER_CONFIRM_H
#define COORDINATOR_PLANNER_CONFIRM_H

#include "coordinator/planner/exact/hunt.h"

/* Append one plan, simulated: instruction by instruction, or where it is too large for that by
 * stages and micro-batches. Takes the plan. */
int confirm_plan(struct hunt *hunt, struct plan *plan, struct planner_result *out,
                 struct error *err);
/* Simulate the best, close the gap as far as the hunt's limits go, and certify the best. */
int confirm_run(struct hunt *hunt, struct planner_result *out, struct error *err);
/* With less and less memory, and on every number of devices: the trade-off between step, memory
 * and devices, as alternatives of the best plan. */
int confirm_frontier(struct hunt *hunt, int least, int most, struct planner_result *out,
                     struct error *err);
bool confirm_fits(const struct planner_result *out);

#endif
