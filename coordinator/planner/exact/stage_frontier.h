/* stage_frontier.h - all ways to run blocks [first, end) on a stage that are not dominated: an
 * exact label-setting algorithm over (T, F, u, memory of every rank) with bounds and dominance.
 *
 * Runs of equal blocks share frontiers, since only the number of blocks counts. */
#ifndef COORDINATOR_PLANNER_EXACT_STAGE_FRONTIER_H
#define COORDINATOR_PLANNER_EXACT_STAGE_FRONTIER_H

#include "coordinator/planner/costs/part_cost.h"
#include "coordinator/planner/exact/instance.h"

/* One way to run the blocks: the sum of its parts, without the stage's base and crossings. */
struct label {
    double seconds, forward_s, once_s; /* T, F, u */
    struct taken taken;                /* on the rank with the least memory */
    int ranks; /* index of its per-rank memory in the list's array; -1: all ranks take the same */
    int entry, exit; /* entry of the first block and exit of the last one */
    int node;        /* index of its frontier_node; see frontiers_choices() */
};

struct frontier {
    int kind, slots, first, end;
    const struct site *site; /* of this kind, and with this memory */
    uint64_t limit;          /* bytes available on the rank with the least memory */
    struct label *labels;
    size_t count;
    struct taken *ranks;   /* per-rank memory of labels */
    struct frontier *next; /* in the same bucket */
};

#define FRONTIER_BUCKETS 1024

/* How a label was composed. */
struct frontier_node {
    int left, right; /* nodes that were joined; left -1: `strategy` alone */
    struct strategy strategy;
};

/* All frontiers of one instance. The choices of the first and the last block are those set by
 * tied_ends.c, if any: where these blocks share weights, their costs depend on each other. */
struct frontiers {
    struct instance *instance;
    double upper_s;   /* labels that cannot lead to less are dropped; may be lowered at any time */
    size_t most;      /* labels per frontier; beyond it labels are cut off */
    size_t pairs;     /* pairs of ties of the first and last block that are solved */
    double omitted_s; /* lower bound on plans with what was cut off; infinity: nothing was */
    double joined;    /* pairs of labels that were joined */
    bool one_stage;   /* only m T + u counts */
    const struct choice *firsts, *lasts;
    size_t first_count, last_count;
    struct frontier *buckets[FRONTIER_BUCKETS]; /* hashed by their keys */
    struct frontier_node *nodes;
    size_t node_count, node_capacity;
};

void frontiers_init(struct frontiers *frontiers, struct instance *instance);
void frontiers_finish(struct frontiers *frontiers);
/* Drop the frontiers that include the first or the last block: their choices change. */
void frontiers_forget_ends(struct frontiers *frontiers);
/* The frontier of blocks [first, end) on a stage, computed if necessary. Lent until the choices of
 * the end blocks change. */
const struct frontier *frontiers_get(struct frontiers *frontiers, int stage, int first, int end);
/* Copy a node; returns its index for a label that is kept. */
int frontiers_add_node(struct frontiers *frontiers, struct frontier_node node);
/* Write the strategies of the node's blocks in order; returns the next free element. */
struct strategy *frontiers_choices(const struct frontiers *frontiers, int node,
                                   struct strategy *out);

#endif
