/* shares.h - how evenly a block's work can be divided at best. */
#ifndef COORDINATOR_PLANNER_SPACE_SHARES_H
#define COORDINATOR_PLANNER_SPACE_SHARES_H

#include "common/graph/graph.h"

/* Of the work of a micro-batch on a block, what some of so many devices has at least: an axis
 * splits the samples, of which each device has a whole number, or another dim, which it has to
 * divide. */
double shares_least(const struct graph *graph, int block, int64_t samples, int devices);

#endif
