/* lanes.h - draws a simulated step with a lane per stage: what its first rank computes above what
 * it transfers. */
#ifndef COORDINATOR_CLI_DRAWINGS_LANES_H
#define COORDINATOR_CLI_DRAWINGS_LANES_H

#include "coordinator/planner/planner.h"

/* Rank r of the plan runs on device r of the request. -EINVAL: it has too many ranks to be lowered
 * individually. Otherwise errors of lower() and simulate(). */
int lanes_draw(const struct planner_request *request, const struct plan *plan, FILE *out,
               struct error *err);

#endif
