/* resuming.h - points that a hunt gave up by the formula, once a step was simulated.
 *
 * The formula is off by what transfers cost each other and by what unequal stages hide: as long as
 * the best simulated step takes longer than the bound of a point, a plan of it may be better. */
#ifndef COORDINATOR_PLANNER_EXACT_RESUMING_H
#define COORDINATOR_PLANNER_EXACT_RESUMING_H

#include "coordinator/planner/exact/hunt.h"

/* The best plan by simulation takes so long: the next points in the order of their bounds are
 * searched until a plan is found, which the hunt has as the last one. False: there are no more, or
 * the limits are met. */
bool resuming_next(struct hunt *hunt, double simulated_s);

#endif
