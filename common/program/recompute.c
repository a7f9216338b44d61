/* recompute.c - the part of a block's forward that runs again before its backward.
 *
 * What runs again writes new buffers, which live only until the block's backward has read them;
 * what the first run wrote is then touched by forward alone and is not saved. Only what backward
 * reads is made again, and what that is made from. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* May this node run again under the block's choice? */
static bool may_run_again(enum recompute recompute, const struct operation *operation)
{
    return recompute == RECOMPUTE_FULL || (recompute == RECOMPUTE_SELECTIVE && operation->cheap);
}

/* Does backward read the node's own output, or a statistic of it? */
static bool reads_own(const struct operation *operation)
{
    return operation->saved >> operation_output(operation) != 0;
}

/* Of the block's nodes, those that run again: from the last to the first, whose output is read
 * by backward or by another that runs again. `wanted` is per tensor. */
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

/* Nodes that do not run again read what those that do have made anew. */
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

/* A sum that forward has finished is not finished once more: what the node has read of it is no
 * larger than the summand, and is saved in its place. */
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

/* Do the same nodes run again? */
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
