/* frontier.h - the plans that were looked at as a drawing: the time of a step against the memory of
 * a device, those that nothing beats in both joined by a line, the chosen one ringed. */
#ifndef COORDINATOR_CLI_DRAWINGS_FRONTIER_H
#define COORDINATOR_CLI_DRAWINGS_FRONTIER_H

#include "coordinator/planner/planner.h"

/* There is at least one candidate. */
void frontier_draw(const struct planner_result *result, FILE *out);

#endif
