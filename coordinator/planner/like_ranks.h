/* like_ranks.h - when ranks with the same program keep pace: one can stand for the others. */
#ifndef COORDINATOR_PLANNER_LIKE_RANKS_H
#define COORDINATOR_PLANNER_LIKE_RANKS_H

#include "coordinator/planner/planner.h"

/* Do ranks of the plan that are alike to program_like() do the same at the same time? Rank r runs
 * on device r of the request. */
bool like_ranks_keep_pace(const struct planner_request *request, const struct plan *plan);

#endif
