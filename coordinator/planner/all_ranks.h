/* all_ranks.h - the programs of all of a plan's ranks, as simulate() takes them. */
#ifndef COORDINATOR_PLANNER_ALL_RANKS_H
#define COORDINATOR_PLANNER_ALL_RANKS_H

#include "common/program/program.h"
#include "coordinator/planner/planner.h"

/* Every rank's program, or that of an earlier one which stands for it: programs has room for all
 * ranks, zeroed. Rank r runs on device r of the request. -errno of lower; either way the programs
 * are yours to destroy. */
int all_ranks_lower(const struct planner_request *request, const struct plan *plan,
                    struct program **programs, struct error *err);
/* And the array. */
void all_ranks_destroy(struct program **programs, int ranks);

#endif
