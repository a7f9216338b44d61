/* unlike.h - lower bounds on a pipeline of unlike devices: every stage takes its blocks at the time
 * that each of its devices alone would need for its least share, within its memory. */
#ifndef COORDINATOR_PLANNER_EXACT_UNLIKE_H
#define COORDINATOR_PLANNER_EXACT_UNLIKE_H

#include "coordinator/planner/space/space.h"

/* A run of `count` equal blocks that ends with block `last`, and what each of them occupies on all
 * devices of its stage together: state, and what one micro-batch in flight keeps per recomputation
 * (infinity: not allowed). */
struct block_run {
    int last, count;
    double state_bytes, saved_bytes[RECOMPUTES];
};

/* Lower bounds on the step in seconds, by the formula and by programs; infinity: the stages
 * together have no room for the run. Of blocks outside the run only the first and the last are
 * counted. */
struct unlike_bound {
    double formula_s, programs_s;
};
struct unlike_bound unlike_bound(struct costs *costs, const struct space_point *point,
                                 const struct block_run *run);

#endif
