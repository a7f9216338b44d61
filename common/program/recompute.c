/* recompute.c - activation recomputation: the part of a block's forward that runs again before its
 * backward.
 *
 * The second run writes new buffers, which live only until the block's backward has read them. The
 * buffers of the first run are then touched by forward only and so are not saved. Only nodes whose
 * output backward reads, and those they depend on, run again. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* May this operation run again with the block's kind of recomputation? */
static bool may_run_again(enum recompute recompute, const struct operation *operation)
{
    return recompute == RECOMPUTE_FULL || (recompute == RECOMPUTE_SELECTIVE && operation->cheap);
}

/* Does backward read the node's own output, or a statistic of it? */
static bool reads_own(const struct operation *operation)
{
    return operation->saved >> operation_output(operation) != 0;
}

/* Chooses the block's nodes that run again, from the last to the first: those whose output is read
 * by backward or by another node that runs again. wanted[] is per tensor, again[] per node; both
 * start out false. */
static void choose(const struct graph *graph, const struct block *block, enum recompute recompute,
                   bool *wanted, bool *again)
{
    const struct node *nodes = graph->nodes;
    for (int n = block->node_first; n < block->node_first + block->node_count; n++)
        for (int i = 0; i < nodes[n].operation->input_count; i++)
            if (nodes[n].operation->saved >> i & 1)
                wanted[nodes[n].operands[i]] = true;
    for (int n = block->node_first + block->node_count - 1; n >= block->node_first; n--) {
        const struct operation *operation = nodes[n].operation;
        int output = nodes[n].operands[operation_output(operation)];
        if (!may_run_again(recompute, operation) || !(wanted[output] || reads_own(operation)))
            continue;
        again[n] = true;
        for (int i = 0; i < operation->input_count; i++)
            wanted[nodes[n].operands[i]] = true;
    }
}

/* Lets a node that does not run again read in backward what the others have recomputed. */
static int refresh(struct lowering *l, int node, const bool *again)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < n->operation->input_count; i++) {
        int producer = l->graph->tensors[n->operands[i]].producer;
        struct fetched *fetched = &l->fetched[node][i];
        if (!(n->operation->saved >> i & 1) || producer < 0 || !again[producer])
            continue;
        int rc = blocks_fetch(l, n->operands[i], &fetched->placement, &fetched->piece);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Avoids repeating a reduction: where forward has reduced a partial sum that is not recomputed, the
 * reduced piece that the node read is kept instead. It is no larger than the summand. */
static void keep_sums(struct lowering *l, int node, const bool *again)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < n->operation->input_count; i++) {
        int tensor = n->operands[i], producer = l->graph->tensors[tensor].producer;
        const struct held *home = &l->homes[tensor];
        const struct fetched *fetched = &l->fetched[node][i];
        if (home->tensor == tensor && home->placement.partial && (producer < 0 || !again[producer]))
            blocks_add(l, tensor, &fetched->placement, &fetched->piece);
    }
}

int recompute_block(struct lowering *l, int index)
{
    enum recompute recompute = l->plan->blocks[index].recompute;
    const struct block *block = &l->graph->blocks[index];
    if (recompute == RECOMPUTE_NONE)
        return 0;
    bool *wanted = xcalloc(l->graph->tensor_count, sizeof *wanted);
    bool *again = xcalloc(l->graph->node_count, sizeof *again);
    int end = block->node_first + block->node_count, rc = 0;
    choose(l->graph, block, recompute, wanted, again);
    for (int n = block->node_first; n < end; n++)
        if (again[n])
            keep_sums(l, n, again);
    for (int n = block->node_first; n < end && rc == 0; n++)
        if (again[n])
            rc = forward_node(l, n);
    for (int n = block->node_first; n < end && rc == 0; n++)
        if (!again[n])
            rc = refresh(l, n, again);
    free(wanted);
    free(again);
    return rc;
}

/* Do two kinds of recomputation run the same nodes again? */
static bool is_like(const struct graph *graph, const struct block *block, enum recompute a,
                    enum recompute b)
{
    bool *wanted[2], *again[2];
    const enum recompute recompute[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        wanted[i] = xcalloc(graph->tensor_count, sizeof *wanted[i]);
        again[i] = xcalloc(graph->node_count, sizeof *again[i]);
        choose(graph, block, recompute[i], wanted[i], again[i]);
    }
    bool like = memcmp(again[0], again[1], graph->node_count * sizeof *again[0]) == 0;
    for (int i = 0; i < 2; i++) {
        free(wanted[i]);
        free(again[i]);
    }
    return like;
}

enum recompute recompute_like(const struct graph *graph, int index, enum recompute recompute)
{
    int first = RECOMPUTE_NONE;
    while (first < (int)recompute &&
           !is_like(graph, &graph->blocks[index], (enum recompute)first, recompute))
        first++;
    return (enum recompute)first;
}
