/* neighbours.h - plans that differ from another one in one thing, by number. */
#ifndef COORDINATOR_PLANNER_EXACT_NEIGHBOURS_H
#define COORDINATOR_PLANNER_EXACT_NEIGHBOURS_H

#include "coordinator/planner/exact/hunt.h"

/* The neighbour of this number, which is the caller's, or NULL where it is the same plan or none;
 * *end: there are no more. Whether it is one of the space is not asked. */
struct plan *neighbours_find(const struct hunt *hunt, const struct plan *plan, int number,
                             bool *end);

#endif
