/* partition.h - divides the blocks into stages with a strategy each: the best plan of a point by
 * the formula (evaluate.h), exact unless frontiers are cut off. */
#ifndef COORDINATOR_PLANNER_EXACT_PARTITION_H
#define COORDINATOR_PLANNER_EXACT_PARTITION_H

#include "coordinator/planner/exact/stage_frontier.h"

/* The best plan of the point that fits and takes less than frontiers->upper_s, which is lowered to
 * its time; NULL if there is none. The caller owns the plan. */
struct plan *partition_solve(struct frontiers *frontiers);
/* The same, with the choices that are currently set in `frontiers` for the first and the last
 * block. */
struct plan *partition_solve_set(struct frontiers *frontiers);

#endif
