/* frontier.h - draws the plans that were examined, step time over memory per device: those that are
 * not dominated are connected by a line, and the chosen one is marked by a ring. */
#ifndef COORDINATOR_CLI_DRAWINGS_FRONTIER_H
#define COORDINATOR_CLI_DRAWINGS_FRONTIER_H

#include "coordinator/planner/planner.h"

/* There must be at least one candidate. */
void frontier_draw(const struct planner_result *result, FILE *out);

#endif
