/* cost_frontier.h - what can be had for how much memory: the cost frontiers of TensorOpt (arXiv
 * 2004.10856), points of which none is better in memory and time, and what is reckoned with them.
 *
 * Time and memory add up: frontiers are added (product), put together (union), and reduced to what
 * is best in memory or time. The trace of a point says which choices of which blocks are in it. */
#ifndef COORDINATOR_PLANNER_COST_FRONTIER_H
#define COORDINATOR_PLANNER_COST_FRONTIER_H

#include <stddef.h>
#include <stdint.h>

struct cost_point {
    double seconds; /* of the whole step */
    uint64_t bytes;
    int left, right; /* traces; -1: nothing was chosen there */
};

/* Empty where all is zero; free(items) ends it. */
struct cost_frontier {
    struct cost_point *items; /* reduced: less and less seconds, more and more bytes */
    size_t count, capacity;
};

/* What the frontiers of one search share. */
struct cost_frontiers {
    uint64_t memory_bytes; /* points with more are left out */
    struct cost_trace *traces;
    size_t trace_count, trace_capacity;
};

void cost_frontiers_finish(struct cost_frontiers *shared);
/* The trace of this choice, an index of the caller's, for the block. */
int cost_frontiers_trace(struct cost_frontiers *shared, int block, int choice);
/* Fills choices, by their block, with all that are in the trace. */
void cost_frontiers_unroll(const struct cost_frontiers *shared, int trace, int *choices);

/* A point more, if it fits and takes finite time; not reduced. trace: -1: nothing was chosen. */
void cost_frontier_append(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                          double seconds, uint64_t bytes, int trace);
/* All points of the other one more; not reduced. */
void cost_frontier_unite(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                         const struct cost_frontier *other);
/* Sorts, and keeps what is best in something; of too many points those that are fastest in equal
 * parts of the memory. */
void cost_frontier_reduce(const struct cost_frontiers *shared, struct cost_frontier *frontier);
/* Adds to `out` all sums of a point of either. They are not reduced and have no traces yet:
 * cost_frontier_seal comes before anything else is done with `out`. */
void cost_frontier_multiply(const struct cost_frontiers *shared, const struct cost_frontier *a,
                            const struct cost_frontier *b, struct cost_frontier *out);
/* Reduces. The sums that stay get traces: from now on a point's `left` is its whole past. */
void cost_frontier_seal(struct cost_frontiers *shared, struct cost_frontier *frontier);
/* Both of the above; its items are the caller's. */
struct cost_frontier cost_frontier_product(struct cost_frontiers *shared,
                                           const struct cost_frontier *a,
                                           const struct cost_frontier *b);
/* The same in place of the first. */
void cost_frontier_add(struct cost_frontiers *shared, struct cost_frontier *frontier,
                       const struct cost_frontier *other);

#endif
