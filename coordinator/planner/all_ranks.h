/* all_ranks.h - lowers a plan for all of its ranks, in the form that simulate() takes. */
#ifndef COORDINATOR_PLANNER_ALL_RANKS_H
#define COORDINATOR_PLANNER_ALL_RANKS_H

#include "common/program/program.h"
#include "coordinator/planner/planner.h"

/* Lower the plan for every rank; rank r runs on device r of the request. `programs` has room for
 * all ranks and is zeroed. Ranks that are sure to behave alike share a program: programs[r] is then
 * that of an earlier rank. Returns a negative errno of lower_with() on failure; either way the
 * caller calls all_ranks_destroy(). */
int all_ranks_lower(const struct planner_request *request, const struct plan *plan,
                    struct program **programs, struct error *err);
/* Destroys the programs, each once, and frees the array itself. */
void all_ranks_destroy(struct program **programs, int ranks);

#endif
