/* short_graph.c - copies the blocks that are kept. */
#include "coordinator/planner/costs/short_graph.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

static int copy_tensor(struct graph *to, const struct tensor *tensor)
{
    graph_sizes_like(to, tensor);
    return tensor->kind == TENSOR_DATA
               ? graph_data(to, tensor->name, tensor->dims, tensor->targets)
               : graph_weight(to, tensor->name, tensor->dims, tensor->initializer, tensor->decays);
}

/* map: for each tensor of the long model its copy in the short one, or -1. */
static void copy_block(struct graph *to, const struct graph *from, int index, int *map)
{
    const struct block *block = &from->blocks[index];
    graph_block(to, block->name, block->type);
    for (int n = block->node_first; n < block->node_first + block->node_count; n++) {
        const struct node *node = &from->nodes[n];
        int last = operation_output(node->operation), operands[OPERANDS_MAX];
        for (int i = 0; i < last; i++) {
            int tensor = node->operands[i];
            if (map[tensor] < 0)
                map[tensor] = copy_tensor(to, &from->tensors[tensor]);
            operands[i] = map[tensor];
        }
        map[node->operands[last]] =
            graph_node_along(to, node->name, node->operation, node->dims, "output", operands);
        to->nodes[to->node_count - 1].epsilon = node->epsilon;
    }
}

/* Check that only the last block uses weights of another block, and only those of the first. */
static int check_ties(struct short_graph *out, const struct graph *graph, struct error *err)
{
    int last = (int)graph->block_count - 1;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            const struct tensor *weight = &graph->tensors[node->operands[i]];
            if (weight->block == node->block)
                continue;
            if (weight->block != 0 || node->block != last)
                return error_set(err, -ENOTSUP,
                                 "blocks %s and %s share the weight %s; only the first block and "
                                 "the last may",
                                 graph->blocks[weight->block].name, graph->blocks[node->block].name,
                                 weight->name);
            out->tied = true;
        }
    }
    return 0;
}

int short_graph_init(struct short_graph *out, const struct graph *graph, struct error *err)
{
    *out = (struct short_graph){0};
    int rc = check_ties(out, graph, err);
    if (rc < 0)
        return rc;
    int *map = xcalloc(graph->tensor_count, sizeof *map), run = 0;
    for (size_t t = 0; t < graph->tensor_count; t++)
        map[t] = -1;
    out->graph = graph_create();
    out->graph->element_bytes = graph->element_bytes;
    out->place = xcalloc(graph->block_count, sizeof *out->place);
    out->before = xcalloc(graph->block_count, sizeof *out->before);
    for (int b = 0; b < (int)graph->block_count; b++) {
        bool again = b > 0 && graph->blocks[b].type == graph->blocks[b - 1].type;
        run = again ? run + 1 : 1;
        if (run <= 2)
            copy_block(out->graph, graph, b, map);
        else
            map[graph->blocks[b].output] = map[graph->blocks[b - 1].output];
        int kept = (int)out->graph->block_count - 1;
        bool goes_on =
            b + 1 < (int)graph->block_count && graph->blocks[b + 1].type == graph->blocks[b].type;
        out->place[b] = again ? kept - 1 : kept;
        out->before[b] = goes_on ? out->place[b] : kept;
    }
    free(map);
    return 0;
}

void short_graph_finish(struct short_graph *out)
{
    graph_destroy(out->graph);
    free(out->place);
    free(out->before);
}
