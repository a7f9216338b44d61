/* short_graph.h - a model in which every run of equal blocks is cut to two; parts are lowered from
 * it.
 *
 * A block of the long model is lowered exactly as its equal in the short one. Two of each run are
 * kept so that the joint between equal blocks exists too. */
#ifndef COORDINATOR_PLANNER_COSTS_SHORT_GRAPH_H
#define COORDINATOR_PLANNER_COSTS_SHORT_GRAPH_H

#include "common/base/error.h"
#include "common/graph/graph.h"

struct short_graph {
    struct graph *graph;
    int *place;  /* [block of the long model]: its equal in the short model */
    int *before; /* the same, as the block before a joint: the last but one of a run of two */
    bool tied;   /* the last block uses a weight of the first one */
};

/* -ENOTSUP: blocks other than the first and the last share weights. */
int short_graph_init(struct short_graph *out, const struct graph *graph, struct error *err);
void short_graph_finish(struct short_graph *out);

#endif
