/* resuming.h - resumes points that a hunt gave up by the formula, once a step was simulated.
 *
 * The formula is off by what transfers cost each other and by what unequal stages hide. As long as
 * the best simulated step takes longer than a point's bound, a plan of that point may be better. */
#ifndef COORDINATOR_PLANNER_EXACT_RESUMING_H
#define COORDINATOR_PLANNER_EXACT_RESUMING_H

#include "coordinator/planner/exact/hunt.h"

/* Search the next points in the order of their bounds until another plan is found, which is then
 * the last of hunt->found. simulated_s: the best plan by simulation. False: no points are left, or
 * the limits are reached. */
bool resuming_next(struct hunt *hunt, double simulated_s);

#endif
