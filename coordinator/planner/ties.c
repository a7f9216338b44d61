/* ties.c - the placements of shared weights. */
#include "coordinator/planner/ties.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_MAX 4 /* uses of shared weights by one block */

/* Compared by its bytes. */
struct tie_ends {
    int32_t block, zero;
    struct {
        struct placement compute, leaving;
    } weights[SHARED_MAX];
};

void ties_finish(struct ties *ties)
{
    free(ties->items);
}

static bool uses(const struct graph *graph, int block, int tensor)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++)
        for (int i = 0; i < operation_output(graph->nodes[n].operation); i++)
            if (graph->nodes[n].operands[i] == tensor)
                return true;
    return false;
}

static void fill(struct tie_ends *ends, const struct graph *graph, int block,
                 const struct role *const *vector, int axes)
{
    const struct block *of = &graph->blocks[block];
    int other = (int)graph->block_count - 1 - block, count = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        struct signature signature;
        if (signature_make(node->operation, vector, axes, &signature, NULL) < 0)
            continue; /* nobody will lower it */
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            if (!uses(graph, other, node->operands[i]))
                continue;
            assert(count < SHARED_MAX && "more weights are shared than there is room for");
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
