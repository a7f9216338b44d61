/* programs.h - what a plan means for each of its ranks; inside planning/ only. */
#ifndef COORDINATOR_PLANNING_PROGRAMS_H
#define COORDINATOR_PLANNING_PROGRAMS_H

#include "coordinator/planning/planning.h"

/* Lower the plan for all of its ranks: their programs' hashes, and what their kernels are to take,
 * into planning. -EINVAL as lower(), with the rank in front. */
int planning_lower(const struct planning_task *task, struct planning *planning, struct error *err);

#endif
