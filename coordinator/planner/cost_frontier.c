/* cost_frontier.c - the points of frontiers, their sums, and the traces that record their
 * choices. */
#include "coordinator/planner/cost_frontier.h"

#include "common/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define POINTS_MAX 64

/* The origin of a point: the sum of two points, or one choice. */
struct cost_trace {
    /* block -1: the sum of traces left and right; otherwise right is the choice for the block */
    int left, right, block;
};

void cost_frontiers_finish(struct cost_frontiers *shared)
{
    free(shared->traces);
}

static int add_trace(struct cost_frontiers *shared, struct cost_trace trace)
{
    shared->traces =
        grow(shared->traces, shared->trace_count, &shared->trace_capacity, sizeof *shared->traces);
    shared->traces[shared->trace_count] = trace;
    return (int)shared->trace_count++;
}

int cost_frontiers_trace(struct cost_frontiers *shared, int block, int choice)
{
    return add_trace(shared, (struct cost_trace){-1, choice, block});
}

void cost_frontiers_unroll(const struct cost_frontiers *shared, int trace, int *choices)
{
    assert(shared->traces && (size_t)trace < shared->trace_count);
    const struct cost_trace *of = &shared->traces[trace];
    if (of->block >= 0) {
        choices[of->block] = of->right;
        return;
    }
    cost_frontiers_unroll(shared, of->left, choices);
    cost_frontiers_unroll(shared, of->right, choices);
}

static void append_point(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                         struct cost_point point)
{
    if (point.bytes > shared->memory_bytes || !isfinite(point.seconds))
        return;
    frontier->items =
        grow(frontier->items, frontier->count, &frontier->capacity, sizeof *frontier->items);
    frontier->items[frontier->count++] = point;
}

void cost_frontier_append(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                          double seconds, uint64_t bytes, int trace)
{
    append_point(shared, frontier, (struct cost_point){seconds, bytes, trace, -1});
}

void cost_frontier_unite(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                         const struct cost_frontier *other)
{
    for (size_t i = 0; i < other->count; i++)
        append_point(shared, frontier, other->items[i]);
}

static int by_bytes(const void *first, const void *second)
{
    const struct cost_point *a = first, *b = second;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->left != b->left ? a->left - b->left : a->right - b->right;
}

void cost_frontier_reduce(const struct cost_frontiers *shared, struct cost_frontier *frontier)
{
    size_t kept = 0;
    double part = (double)shared->memory_bytes / POINTS_MAX;
    if (frontier->count > 1)
        qsort(frontier->items, frontier->count, sizeof *frontier->items, by_bytes);
    for (size_t i = 0; i < frontier->count; i++)
        if (kept == 0 || frontier->items[i].seconds < frontier->items[kept - 1].seconds)
            frontier->items[kept++] = frontier->items[i];
    frontier->count = kept;
    if (kept <= POINTS_MAX)
        return;
    size_t last = 0;
    for (size_t i = 1; i < kept; i++) {
        bool same = (size_t)((double)frontier->items[i].bytes / part) ==
                    (size_t)((double)frontier->items[last].bytes / part);
        frontier->items[last += !same] = frontier->items[i];
    }
    frontier->count = last + 1;
}

void cost_frontier_multiply(const struct cost_frontiers *shared, const struct cost_frontier *a,
                            const struct cost_frontier *b, struct cost_frontier *out)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            append_point(shared, out,
                         (struct cost_point){a->items[i].seconds + b->items[j].seconds,
                                             a->items[i].bytes + b->items[j].bytes,
                                             a->items[i].left, b->items[j].left});
}

void cost_frontier_seal(struct cost_frontiers *shared, struct cost_frontier *frontier)
{
    cost_frontier_reduce(shared, frontier);
    for (size_t i = 0; i < frontier->count; i++) {
        struct cost_point *point = &frontier->items[i];
        if (point->left >= 0 && point->right >= 0)
            point->left = add_trace(shared, (struct cost_trace){point->left, point->right, -1});
        else if (point->right >= 0)
            point->left = point->right;
        point->right = -1;
    }
}

struct cost_frontier cost_frontier_product(struct cost_frontiers *shared,
                                           const struct cost_frontier *a,
                                           const struct cost_frontier *b)
{
    struct cost_frontier out = {0};
    cost_frontier_multiply(shared, a, b, &out);
    cost_frontier_seal(shared, &out);
    return out;
}

void cost_frontier_add(struct cost_frontiers *shared, struct cost_frontier *frontier,
                       const struct cost_frontier *other)
{
    struct cost_frontier sum = cost_frontier_product(shared, frontier, other);
    free(frontier->items);
    *frontier = sum;
}
