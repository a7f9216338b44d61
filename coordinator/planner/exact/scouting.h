/* scouting.h - plans that are cheap to find, before any point of a hunt is opened: what is to be
 * beaten, where to begin, and, where nothing fits, what would need the least memory. */
#ifndef COORDINATOR_PLANNER_EXACT_SCOUTING_H
#define COORDINATOR_PLANNER_EXACT_SCOUTING_H

#include "coordinator/planner/exact/hunt.h"

/* Adds the plans that were better than all before, and fills the points' hopes. */
void scouting_run(struct hunt *hunt);
/* Sets hunt->smallest, and adds it if it fits after all. */
void scouting_smallest(struct hunt *hunt);
/* Devices of the host that has most of them. */
int scouting_host(const struct planner_request *request);

#endif
