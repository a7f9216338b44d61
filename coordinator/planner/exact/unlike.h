/* unlike.h - what a pipeline of unlike devices takes at least: every stage its blocks by what each
 * of its devices alone would take for them, has to do of them, and can keep. */
#ifndef COORDINATOR_PLANNER_EXACT_UNLIKE_H
#define COORDINATOR_PLANNER_EXACT_UNLIKE_H

#include "coordinator/planner/space/space.h"

/* So many equal blocks, up to this one. Each leaves that much in memory, on all devices of its
 * stage together: state, and what one micro-batch in flight keeps, by how much of it is recomputed
 * (infinity: not allowed). */
struct block_run {
    int last, count;
    double state_bytes, saved_bytes[RECOMPUTES];
};

/* No plan of the point is shorter: seconds, by the formula and by programs; infinity: its stages
 * together have no room for the run's blocks. Of other blocks than the run's the first and the last
 * count. */
struct unlike_bound {
    double formula_s, programs_s;
};
struct unlike_bound unlike_bound(struct costs *costs, const struct space_point *point,
                                 const struct block_run *run);

#endif
