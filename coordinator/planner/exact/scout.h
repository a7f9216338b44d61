/* scout.h - the plans that an expert would try first: one strategy for all blocks, tensor roles on
 * the fast axes of each stage and batch on the slow ones, stages as equal in time as can be. They
 * are cheap to price, so an exact search knows early what it has to beat, and where to begin. */
#ifndef COORDINATOR_PLANNER_EXACT_SCOUT_H
#define COORDINATOR_PLANNER_EXACT_SCOUT_H

#include "coordinator/planner/space/space.h"

/* The best such plan of a point, which is the caller's, and its seconds by the formula; NULL and
 * infinity if none fits or none takes less than upper_s. *hope_s: what a plan may take that gives
 * up just enough for its memory, block by block: a guess, no bound. */
struct plan *scout_point(struct costs *costs, const struct space_point *point, double upper_s,
                         double *formula_s, double *hope_s);
/* Of a point's plans of this kind the one whose fullest stage takes the least share of its devices'
 * memory, whether it fits or not; NULL: there is none. */
struct plan *scout_smallest(struct costs *costs, const struct space_point *point, double *share);
/* Divides a plan's blocks into stages so that the longest is as short as can be; a block takes
 * seconds[stage * stride + block], infinity where it cannot be. false: there is no such way. */
bool scout_balance(struct plan *plan, const double *seconds, int stride);

#endif
