/* programs.h - what a plan means for each of its ranks. Private to planning/. */
#ifndef COORDINATOR_PLANNING_PROGRAMS_H
#define COORDINATOR_PLANNING_PROGRAMS_H

#include "coordinator/planning/planning.h"

/* Lower the plan for all ranks, and fill in the hashes of their programs and the predicted times of
 * their kernels. -EINVAL as lower(), with the rank in front. */
int planning_lower(const struct planning_task *task, struct planning *planning, struct error *err);

#endif
