/* partition.h - which blocks on which stage, and in which way: the best plan of a point by the
 * formula (evaluate.h), exactly unless frontiers are cut. */
#ifndef COORDINATOR_PLANNER_EXACT_PARTITION_H
#define COORDINATOR_PLANNER_EXACT_PARTITION_H

#include "coordinator/planner/exact/stage_frontier.h"

/* The best plan of the point that fits and takes less than frontiers->upper_s, which is lowered to
 * its time, or NULL. The plan is the caller's. */
struct plan *partition_solve(struct frontiers *frontiers);
/* The same with the choices that are set for the first block and the last. */
struct plan *partition_solve_set(struct frontiers *frontiers);

#endif
