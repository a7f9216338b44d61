/* tied_ends.h - the best plan of a point if the model's first and last block share weights. */
#ifndef COORDINATOR_PLANNER_EXACT_TIED_ENDS_H
#define COORDINATOR_PLANNER_EXACT_TIED_ENDS_H

#include "coordinator/planner/exact/stage_frontier.h"

/* As partition_solve(), trying every pair of ties of the two blocks. */
struct plan *tied_ends_solve(struct frontiers *frontiers);

#endif
