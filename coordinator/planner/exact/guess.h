/* guess.h - a first good plan of a point: one vector of roles, one zero and one recomputation for
 * all blocks, and stages as equal in time as can be. What exact search has to beat. */
#ifndef COORDINATOR_PLANNER_EXACT_GUESS_H
#define COORDINATOR_PLANNER_EXACT_GUESS_H

#include "coordinator/planner/exact/instance.h"

/* The plan, which is the caller's, and the seconds of its step by the formula; NULL and infinity
 * if no such plan fits. */
struct plan *guess_plan(struct instance *instance, double *formula_s);

#endif
