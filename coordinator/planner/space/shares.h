/* shares.h - how evenly a block's work can be divided at best. */
#ifndef COORDINATOR_PLANNER_SPACE_SHARES_H
#define COORDINATOR_PLANNER_SPACE_SHARES_H

#include "common/graph/graph.h"

/* Divide a block's work on a micro-batch among `devices`: some device has at least this share. An
 * axis of the mesh splits either the samples, of which each device has a whole number, or another
 * dim, which it has to divide. */
double shares_least(const struct graph *graph, int block, int64_t samples, int devices);

#endif
