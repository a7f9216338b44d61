/* short_graph.h - a model with every run of equal blocks cut to two: what parts are lowered of.
 *
 * A block of a long model is lowered in the same way as its like in the short one; two of a run
 * are kept so that the joint between equal blocks is there too. */
#ifndef COORDINATOR_PLANNER_COSTS_SHORT_GRAPH_H
#define COORDINATOR_PLANNER_COSTS_SHORT_GRAPH_H

#include "common/base/error.h"
#include "common/graph/graph.h"

struct short_graph {
    struct graph *graph;
    int *place;  /* per block of the long model: its like in the short one */
    int *before; /* the same, as the one before a joint: the last but one of a run of two */
    bool tied;   /* the last block uses a weight of the first one */
};

/* -ENOTSUP: other blocks than the first and the last share weights. */
int short_graph_init(struct short_graph *out, const struct graph *graph, struct error *err);
void short_graph_finish(struct short_graph *out);

#endif
