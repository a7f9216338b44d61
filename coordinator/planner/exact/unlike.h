/* unlike.h - what a pipeline of unlike devices takes at least: every stage its blocks by what each
 * of its devices alone would take for them, and has to do of them. */
#ifndef COORDINATOR_PLANNER_EXACT_UNLIKE_H
#define COORDINATOR_PLANNER_EXACT_UNLIKE_H

#include "coordinator/planner/space/space.h"

/* So many equal blocks, up to this one. */
struct block_run {
    int last, count;
};

/* No plan of the point is shorter by the formula: seconds. Of other blocks than the run's the first
 * and the last count. */
double unlike_bound(struct costs *costs, const struct space_point *point, struct block_run run);

#endif
