/* tradeoff.h - of the plans that were looked at, those that no other beats in time, memory and
 * devices at once: what can be had for less of one. */
#ifndef COORDINATOR_PLANNER_TRADEOFF_H
#define COORDINATOR_PLANNER_TRADEOFF_H

#include "coordinator/planner/planner.h"

/* Plans that fit, those on the most devices first, of as many the fastest; lent by the result. The
 * array is the caller's. */
const struct plan **tradeoff_find(const struct planner_result *result, size_t *count);

#endif
