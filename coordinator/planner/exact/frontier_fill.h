/* frontier_fill.h - computes the labels of a frontier: a block's choices, or all combinations of
 * two shorter frontiers, without those that cannot lead to a better plan. */
#ifndef COORDINATOR_PLANNER_EXACT_FRONTIER_FILL_H
#define COORDINATOR_PLANNER_EXACT_FRONTIER_FILL_H

#include "coordinator/planner/exact/stage_frontier.h"

/* Fill `labels`, `count` and `ranks` of a frontier whose other fields are set; it owns them from
 * then on. `stage` is any stage that the frontier is for. The two frontiers it is joined from are
 * filled on the way, and frontiers->omitted_s is lowered to the bound of what is cut off. */
void frontier_fill(struct frontiers *frontiers, struct frontier *frontier, int stage);

#endif
