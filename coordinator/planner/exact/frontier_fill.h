/* frontier_fill.h - the labels of a frontier: a block's choices, or those of two shorter frontiers
 * joined, without what leads to no better plan. */
#ifndef COORDINATOR_PLANNER_EXACT_FRONTIER_FILL_H
#define COORDINATOR_PLANNER_EXACT_FRONTIER_FILL_H

#include "coordinator/planner/exact/stage_frontier.h"

/* Sets `labels`, `count` and `ranks`, from then on the frontier's, of one whose other fields are
 * set; `stage` is the index of any stage that it is for. The frontiers it is joined from are filled
 * on the way; omitted_s falls to the bound of what is cut off. */
void frontier_fill(struct frontiers *frontiers, struct frontier *frontier, int stage);

#endif
