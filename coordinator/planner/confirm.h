/* confirm.h - simulates the plans that a hunt found, picks the best of them, and certifies how far
 * it can be from the optimum. */
#ifndef COORDINATOR_PLANNER_CONFIRM_H
#define COORDINATOR_PLANNER_CONFIRM_H

#include "coordinator/planner/exact/hunt.h"

/* The candidate that is this plan, lent until another is appended; NULL: it has not been judged.
 * Assigns the plan's devices. */
struct candidate *confirm_find(const struct hunt *hunt, struct plan *plan,
                               const struct planner_result *out);
/* Judge one plan by simulation and append it: instruction by instruction, or, if it is too large
 * for that, by stages and micro-batches (events.h). Several roads may lead to a plan; one that is a
 * candidate already is dropped. Takes ownership of the plan. */
int confirm_plan(struct hunt *hunt, struct plan *plan, struct planner_result *out,
                 struct error *err);
/* Simulate the plans found, close the gap to the lower bound as far as the hunt's limits allow, and
 * record the certificate in the best plan's predicted values. */
int confirm_run(struct hunt *hunt, struct planner_result *out, struct error *err);
/* Explore the trade-off between step time, memory and devices: repeat the hunt on `least` to `most`
 * devices with less and less memory, and record the results as the best plan's alternatives. */
int confirm_frontier(struct hunt *hunt, int least, int most, struct planner_result *out,
                     struct error *err);
/* Record the trade-off among all candidates as the alternatives of `best`, one that fits. */
void confirm_alternatives(const struct planner_result *out, struct plan *best);
/* The fastest plan that fits, of the candidates from `first` on; ties are broken as in
 * planner_run(). NULL: none fits. */
struct plan *confirm_best(const struct planner_result *out, size_t first);
/* Whether any candidate fits. */
bool confirm_fits(const struct planner_result *out);

#endif
