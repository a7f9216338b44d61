/* like_ranks.h - when one rank's timeline can stand for those of others. */
#ifndef COORDINATOR_PLANNER_LIKE_RANKS_H
#define COORDINATOR_PLANNER_LIKE_RANKS_H

#include "coordinator/planner/planner.h"

/* Whether ranks that program_like() considers alike also do the same at the same time. Rank r runs
 * on device r of the request. */
bool like_ranks_keep_pace(const struct planner_request *request, const struct plan *plan);

#endif
