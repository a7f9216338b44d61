/* scout.h - the plans that an expert would try first: one strategy for all blocks, tensor roles on
 * the fast axes of each stage and batch on the slow ones, and stages balanced in time. They are
 * cheap to price, so exact search soon knows what it has to beat and where to begin. */
#ifndef COORDINATOR_PLANNER_EXACT_SCOUT_H
#define COORDINATOR_PLANNER_EXACT_SCOUT_H

#include "coordinator/planner/space/space.h"

/* The best such plan of a point, owned by the caller, with its seconds by the formula; NULL and
 * infinity if none fits or takes less than upper_s. *hope_s estimates, without being a bound, the
 * step of a plan that gives up just enough for its memory, block by block. */
struct plan *scout_point(struct costs *costs, const struct space_point *point, double upper_s,
                         double *formula_s, double *hope_s);
/* The plan of this kind whose fullest stage uses the least share of its devices' memory, whether it
 * fits or not; owned by the caller. NULL: there is none. */
struct plan *scout_smallest(struct costs *costs, const struct space_point *point, double *share);
/* Divide a plan's blocks into stages so that the slowest is as fast as possible. Block b on stage s
 * takes seconds[s * stride + b], infinity where it cannot be. false: no division is possible. */
bool scout_balance(struct plan *plan, const double *seconds, int stride);

#endif
