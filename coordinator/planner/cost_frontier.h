/* cost_frontier.h - cost frontiers as in TensorOpt (arXiv 2004.10856): sets of (time, memory)
 * points none of which is worse than another in both, and their algebra.
 *
 * Time and memory are additive, so frontiers can be added (product), merged (union), and reduced to
 * the points that are best in one of the two. Each point has a trace, which records the choices
 * made for the blocks that it includes. */
#ifndef COORDINATOR_PLANNER_COST_FRONTIER_H
#define COORDINATOR_PLANNER_COST_FRONTIER_H

#include <stddef.h>
#include <stdint.h>

struct cost_point {
    double seconds; /* of the whole step */
    uint64_t bytes;
    /* traces; -1: no choice involved. right is used only until cost_frontier_seal(). */
    int left, right;
};

/* Initialize to zero; release with free(items). */
struct cost_frontier {
    struct cost_point *items; /* after reduction: bytes increase, seconds decrease */
    size_t count, capacity;
};

/* State shared by all frontiers of one search. */
struct cost_frontiers {
    uint64_t memory_bytes; /* points that need more are dropped */
    struct cost_trace *traces;
    size_t trace_count, trace_capacity;
};

/* Frees the traces; frontiers are released by their owners. */
void cost_frontiers_finish(struct cost_frontiers *shared);
/* The trace of one choice for a block; `choice` is an index that only the caller interprets. */
int cost_frontiers_trace(struct cost_frontiers *shared, int block, int choice);
/* Set choices[block] for every block that the trace covers. */
void cost_frontiers_unroll(const struct cost_frontiers *shared, int trace, int *choices);

/* Add a point, unless it exceeds the memory or takes infinite time. Does not reduce. trace -1: no
 * choice involved. */
void cost_frontier_append(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                          double seconds, uint64_t bytes, int trace);
/* Add all points of another frontier. Does not reduce. */
void cost_frontier_unite(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                         const struct cost_frontier *other);
/* Sort the points and drop the dominated ones. If too many remain, keep the fastest in each of
 * equal slices of the memory. */
void cost_frontier_reduce(const struct cost_frontiers *shared, struct cost_frontier *frontier);
/* Add to `out` the sum of every pair of points of a and b. Neither reduces nor makes traces:
 * cost_frontier_seal() must follow before `out` is used otherwise. */
void cost_frontier_multiply(const struct cost_frontiers *shared, const struct cost_frontier *a,
                            const struct cost_frontier *b, struct cost_frontier *out);
/* Reduce, and combine the left and right traces of each remaining sum into one, kept in `left`. */
void cost_frontier_seal(struct cost_frontiers *shared, struct cost_frontier *frontier);
/* cost_frontier_multiply() and cost_frontier_seal() into a new frontier; the caller frees its
 * items. */
struct cost_frontier cost_frontier_product(struct cost_frontiers *shared,
                                           const struct cost_frontier *a,
                                           const struct cost_frontier *b);
/* Replace `frontier` by its product with `other`. */
void cost_frontier_add(struct cost_frontiers *shared, struct cost_frontier *frontier,
                       const struct cost_frontier *other);

#endif
