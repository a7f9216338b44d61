/* tied_ends.h - the best plan of a point of a model whose first block and last share weights. */
#ifndef COORDINATOR_PLANNER_EXACT_TIED_ENDS_H
#define COORDINATOR_PLANNER_EXACT_TIED_ENDS_H

#include "coordinator/planner/exact/stage_frontier.h"

/* As partition_solve(): with every pair of ties of the two. */
struct plan *tied_ends_solve(struct frontiers *frontiers);

#endif
