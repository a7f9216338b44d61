/* stage_frontier.h - all ways to run blocks [first, end) on a stage that are best in something:
 * an exact label algorithm over (T, F, u, memory of every rank), with bounds and dominance.
 *
 * Runs of equal blocks share their frontiers: what counts is how many blocks there are. */
#ifndef COORDINATOR_PLANNER_EXACT_STAGE_FRONTIER_H
#define COORDINATOR_PLANNER_EXACT_STAGE_FRONTIER_H

#include "coordinator/planner/costs/taken.h"
#include "coordinator/planner/exact/instance.h"

/* One way: the sum of its parts, without base and crossings. */
struct label {
    double seconds, forward_s, once_s; /* T, F, u */
    struct taken taken;                /* on the rank that has least memory */
    int ranks;       /* the first of those that are told apart, in a list; -1: all take as much */
    int entry, exit; /* ends of the first block's and the last block's choices */
    int node;        /* how it came about: see frontiers_choices() */
};

struct frontier {
    int kind, slots, first, end;
    const struct site *site; /* one of the kind, and with such memory */
    uint64_t limit;          /* bytes, on the rank that has least memory */
    struct label *labels;
    size_t count;
    struct taken *ranks;   /* of labels */
    struct frontier *next; /* in the same bucket */
};

#define FRONTIER_BUCKETS 1024

struct frontier_node {
    int left, right; /* nodes that were put together; -1: `strategy` alone */
    struct strategy strategy;
};

/* The frontiers of one instance. The first block's and the last one's choices are those that
 * tied_ends.c sets: where they share weights, their costs depend on each other. */
struct frontiers {
    struct instance *instance;
    double upper_s;   /* labels that cannot lead to less are dropped; may be lowered at any time */
    size_t most;      /* labels of one frontier, shared by its pairs of ends; more are cut off */
    size_t pairs;     /* of ties of the first and the last block that are looked at */
    double omitted_s; /* no plan with what was cut off is shorter; infinity: nothing was */
    double joined;    /* pairs of labels that were looked at */
    bool one_stage;   /* only m T + u counts */
    const struct choice *firsts, *lasts;
    size_t first_count, last_count;
    struct frontier *buckets[FRONTIER_BUCKETS]; /* by a hash of what tells them apart */
    struct frontier_node *nodes;
    size_t node_count, node_capacity;
};

void frontiers_init(struct frontiers *frontiers, struct instance *instance);
void frontiers_finish(struct frontiers *frontiers);
/* Forget those that hold the first block or the last: their choices change. */
void frontiers_forget_ends(struct frontiers *frontiers);
/* Lent until the choices at the ends change. */
const struct frontier *frontiers_get(struct frontiers *frontiers, int stage, int first, int end);
/* Copies the node; returns its index, for a label that is kept. */
int frontiers_add_node(struct frontiers *frontiers, struct frontier_node node);
/* Fills the strategies of the blocks, from the first on; returns the next free place. */
struct strategy *frontiers_choices(const struct frontiers *frontiers, int node,
                                   struct strategy *out);

#endif
