/* exact.h - the default search, with its limits as an argument. */
#ifndef COORDINATOR_PLANNER_SEARCHES_EXACT_H
#define COORDINATOR_PLANNER_SEARCHES_EXACT_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/exact/hunt.h"

/* As struct search's run, within these limits. */
int exact_run(const struct planner_request *request, const struct hunt_limits *limits,
              struct planner_result *out, struct error *err);

#endif
