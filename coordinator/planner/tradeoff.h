/* tradeoff.h - the Pareto front of the plans that were examined: those that no other plan beats in
 * step time, memory and number of devices at once. */
#ifndef COORDINATOR_PLANNER_TRADEOFF_H
#define COORDINATOR_PLANNER_TRADEOFF_H

#include "coordinator/planner/planner.h"

/* The plans that fit and are not dominated; of equal ones the first. Ordered by devices, most
 * first, then by step time, fastest first. The plans belong to the result; the caller frees the
 * array. */
const struct plan **tradeoff_find(const struct planner_result *result, size_t *count);

#endif
