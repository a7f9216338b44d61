/* block_order.c - finds the runs of like blocks and sorts each by sharding and recomputation. */
#include "coordinator/planner/exact/block_order.h"

#include <stdlib.h>
#include <string.h>

static int rising(const void *first, const void *second)
{
    const struct plan_block *a = first, *b = second;
    if (a->zero != b->zero)
        return a->zero < b->zero ? -1 : 1;
    return (a->recompute > b->recompute) - (a->recompute < b->recompute);
}

static int falling(const void *first, const void *second)
{
    return rising(second, first);
}

struct plan *block_order_sort(const struct plan *plan, const int *place, enum block_order order)
{
    int (*const compare)(const void *, const void *) =
        order == BLOCK_ORDER_RISING ? rising : falling;
    struct plan *sorted = plan_copy(plan);
    bool changed = false;
    for (int first = 0, end; first < plan->block_count; first = end) {
        const struct plan_block *like = &plan->blocks[first];
        for (end = first + 1; end < plan->block_count; end++) {
            const struct plan_block *block = &plan->blocks[end];
            if (place[end] != place[first] || block->stage != like->stage ||
                memcmp(block->roles, like->roles, sizeof like->roles) != 0)
                break;
        }
        for (int b = first + 1; b < end; b++)
            changed = changed || compare(&plan->blocks[b - 1], &plan->blocks[b]) > 0;
        qsort(&sorted->blocks[first], (size_t)(end - first), sizeof *sorted->blocks, compare);
    }
    if (changed)
        return sorted;
    plan_destroy(sorted);
    return NULL;
}
