/* neighbours.h - enumerates the plans that differ from a given one in a single respect. */
#ifndef COORDINATOR_PLANNER_EXACT_NEIGHBOURS_H
#define COORDINATOR_PLANNER_EXACT_NEIGHBOURS_H

#include "coordinator/planner/exact/hunt.h"

/* The neighbour with this number, owned by the caller; NULL if there is none with it or it equals
 * the plan. *end: there are no more numbers. It may lie outside the space. */
struct plan *neighbours_find(const struct hunt *hunt, const struct plan *plan, int number,
                             bool *end);

#endif
