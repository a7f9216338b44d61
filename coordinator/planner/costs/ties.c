/* ties.c - identifies ties by the placements of a block's weights. */
#include "coordinator/planner/costs/ties.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define USES_MAX 8 /* weights used by one block */

/* Compared as bytes, so whatever is not used has to be 0. */
struct tie_ends {
    int32_t block, zero;
    struct {
        struct placement compute, leaving;
    } weights[USES_MAX];
};

void ties_finish(struct ties *ties)
{
    free(ties->items);
}

static void fill(struct tie_ends *ends, const struct graph *graph, int block,
                 const struct role *const *vector, int axes)
{
    const struct block *of = &graph->blocks[block];
    int count = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        struct signature signature;
        if (signature_make(node->operation, vector, axes, &signature, NULL) < 0)
            continue; /* such a strategy is never lowered */
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            assert(count < USES_MAX && "a block at the end of the model with more weights");
            ends->weights[count].compute = signature.operand[i];
            ends->weights[count++].leaving = signature.gradient[i];
        }
    }
}

int ties_find(struct ties *ties, const struct graph *graph, int block,
              const struct role *const *vector, int axes, int zero)
{
    struct tie_ends ends;
    memset(&ends, 0, sizeof ends);
    ends.block = block;
    ends.zero = block == 0 ? zero : 0;
    fill(&ends, graph, block, vector, axes);
    for (size_t i = 0; i < ties->count; i++)
        if (memcmp(&ties->items[i], &ends, sizeof ends) == 0)
            return (int)i + 1;
    ties->items = grow(ties->items, ties->count, &ties->capacity, sizeof *ties->items);
    ties->items[ties->count] = ends;
    return (int)++ties->count;
}
