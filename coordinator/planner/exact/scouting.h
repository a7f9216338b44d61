/* scouting.h - finds cheap plans before any point of a hunt is opened: what has to be beaten, where
 * to begin and, if nothing fits, what would need the least memory. */
#ifndef COORDINATOR_PLANNER_EXACT_SCOUTING_H
#define COORDINATOR_PLANNER_EXACT_SCOUTING_H

#include "coordinator/planner/exact/hunt.h"

/* Add the plans that improve on all before them, and set the points' hope_s. */
void scouting_run(struct hunt *hunt);
/* Set hunt->smallest, and add it if it fits after all. */
void scouting_smallest(struct hunt *hunt);
/* Number of devices of the largest host. */
int scouting_host(const struct planner_request *request);

#endif
