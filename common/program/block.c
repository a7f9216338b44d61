/* block.c - lowers one block for one micro-batch: its forward, what runs again before its backward,
 * and its backward.
 *
 * Forward: every tensor has a home, the placement in which it was made or arrived. A node fetches
 * its inputs in the placements that its roles ask for; a redistributed version is shared by all
 * nodes of the block.
 *
 * Recomputation: the second run writes new buffers, which live only until the block's backward has
 * read them. The buffers of the first run are then touched by forward only and so are not saved.
 * Only nodes whose output backward reads, and those they depend on, run again.
 *
 * Backward: gradients go through the nodes, last node first. A tensor with several users gets a
 * gradient contribution from each. Contributions in the same placement are summed first and then
 * redistributed once. A gradient that passes through a node unchanged (the residual stream) stays
 * in the same buffer; it is copied only when somebody would add to it while another still needs to
 * read it. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The boxes of a node's operands on this rank. */
static void node_boxes(const struct lowering *l, int node, struct box *boxes)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < operation_operands(n->operation); i++) {
        struct shape shape = shape_of(&l->graph->tensors[n->operands[i]], l->program->samples);
        boxes[i] = own_slice(l, &shape, &l->signatures[node].operand[i]);
    }
}

static struct held *block_find_version(struct lowering *l, int tensor,
                                       const struct placement *placement)
{
    for (size_t i = 0; i < l->versions.count; i++) {
        struct held *held = &l->versions.items[i];
        if (held->tensor == tensor && placement_equal(&held->placement, placement))
            return held;
    }
    return NULL;
}

/* Notes that the tensor is at hand in this placement too, until the block ends. */
static void block_add_version(struct lowering *l, int tensor, const struct placement *placement,
                              const struct piece *piece)
{
    struct held_list *list = &l->versions;
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = (struct held){tensor, *placement, *piece};
}

static struct piece block_load(struct lowering *l, int tensor, const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = own_slice(l, &shape, placement);
    struct piece piece = emit_new(l, REGION_TRANSIENT, tensor, &box);
    emit(l, INSTRUCTION_LOAD);
    emit_piece(l, 0, &piece);
    return piece;
}

int blocks_fetch(struct lowering *l, int tensor, const struct placement *placement,
                 struct piece *out)
{
    struct held *home = &l->homes[tensor], *version;
    if (home->tensor == tensor && placement_equal(&home->placement, placement)) {
        *out = home->piece;
        return 0;
    }
    if ((version = block_find_version(l, tensor, placement)) != NULL) {
        *out = version->piece;
        return 0;
    }
    if (l->graph->tensors[tensor].kind == TENSOR_DATA) {
        *out = block_load(l, tensor, placement);
    } else {
        assert(home->tensor == tensor && "a block reads the block before it, itself and weights");
        struct shape shape = tensor_shape(l, tensor);
        *out = home->piece;
        int rc = move_within(l, &shape, tensor, &home->placement, placement, out);
        if (rc < 0)
            return error_prefix(l->err, rc, "tensor %s", l->graph->tensors[tensor].name);
        /* An all-reduce worked in place, so the home now holds the complete sum. */
        if (out->buffer == home->piece.buffer && home->placement.partial) {
            *home = (struct held){tensor, *placement, *out};
            return 0;
        }
    }
    block_add_version(l, tensor, placement, out);
    return 0;
}

/* Gathers a weight for the block that uses it (ZeRO 3), beside the computation before it. */
static int block_gather(struct lowering *l, const struct weight_use *use, struct piece *out)
{
    emit_beside(l);
    int rc = blocks_fetch(l, use->tensor, &use->compute, out);
    emit_at_once(l);
    return rc;
}

/* Gathers all such weights of a block in few calls; only of operations for which needs() is true,
 * unless it is NULL. */
static int block_gather_all(struct lowering *l, int index, bool (*needs)(const struct node *))
{
    const struct block *block = &l->graph->blocks[index];
    int rc = 0;
    for (int n = block->node_first; n < block->node_first + block->node_count && rc == 0; n++) {
        const struct operation *operation = l->graph->nodes[n].operation;
        struct piece piece;
        if (needs && !needs(&l->graph->nodes[n]))
            continue;
        for (int i = operation->input_count; i < operation_output(operation) && rc == 0; i++)
            if (weights_gathered(l, weights_use(l, n, i)))
                rc = block_gather(l, weights_use(l, n, i), &piece);
    }
    return rc;
}

/* Is the path only all-gathers? Then backward can gather again from the smaller piece, instead of
 * keeping the larger one. */
static bool block_only_gathers(struct lowering *l, int tensor, const struct placement *from,
                               const struct placement *to)
{
    const struct step *steps;
    int count = move_route(l, tensor, from, to, &steps);
    for (int i = 0; i < count; i++)
        if (steps[i].kind != STEP_ALL_GATHER)
            return false;
    return count > 0;
}

static int forward_fetch(struct lowering *l, int node)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < n->operation->input_count; i++) {
        struct fetched *fetched = &l->fetched[node][i];
        int tensor = n->operands[i];
        fetched->placement = l->signatures[node].operand[i];
        fetched->again =
            l->homes[tensor].tensor == tensor && !l->homes[tensor].placement.partial &&
            block_only_gathers(l, tensor, &l->homes[tensor].placement, &fetched->placement);
        int rc = blocks_fetch(l, tensor, &fetched->placement, &fetched->piece);
        if (rc < 0)
            return rc;
    }
    for (int i = n->operation->input_count; i < operation_output(n->operation); i++) {
        struct fetched *fetched = &l->fetched[node][i];
        const struct weight_use *use = weights_use(l, node, i);
        *fetched = (struct fetched){use->compute, use->weight, weights_gathered(l, use)};
        int rc = fetched->again ? block_gather(l, use, &fetched->piece) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The loss is summed over all ranks, so of those with the same summand only one may count it. */
static bool counts_loss(const struct lowering *l, const struct placement *loss)
{
    return does_for_all(l, ~(unsigned)loss->partial);
}

/* Emits one forward phase of a node. Pieces: operands, output, statistics of the phases so far. */
static void forward_emit_phase(struct lowering *l, int node, int phase, const struct piece *output,
                               const struct piece *statistics, int workspace)
{
    const struct operation *operation = l->graph->nodes[node].operation;
    int last = operation_output(operation);
    struct instruction *kernel = emit(l, INSTRUCTION_KERNEL);
    kernel->kernel.node = node;
    kernel->kernel.phase = phase;
    kernel->kernel.direction = FORWARD;
    kernel->kernel.once = at_first_of(l, l->signatures[node].operand[last].partial);
    kernel->kernel.workspace = workspace;
    for (int i = 0; i < last; i++)
        emit_piece(l, i, &l->fetched[node][i].piece);
    emit_piece(l, last, output);
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++)
        if (operation->statistics[FORWARD][i].phase <= phase)
            emit_piece(l, last + 1 + i, &statistics[i]);
    emit_use(l, workspace);
}

static int forward_node(struct lowering *l, int node)
{
    const struct node *n = &l->graph->nodes[node];
    const struct operation *operation = n->operation;
    int rc = forward_fetch(l, node);
    if (rc < 0)
        return rc;
    struct box boxes[OPERANDS_MAX];
    node_boxes(l, node, boxes);
    int last = operation_output(operation), tensor = n->operands[last];
    struct piece output, *statistics = l->statistics[node];
    bool is_loss = operation->is_loss &&
                   l->section == SECTION_FORWARD; /* recomputation must not count it again */
    if (is_loss && counts_loss(l, &l->signatures[node].operand[last]))
        output = (struct piece){.buffer = l->program->metrics, .offset = METRIC_LOSS};
    else
        output = emit_new(l, REGION_TRANSIENT, tensor, &boxes[last]);
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++) {
        struct box box = signature_statistic_box(n, &operation->statistics[FORWARD][i], boxes);
        statistics[i] = emit_new(l, REGION_TRANSIENT, -1, &box);
    }

    unsigned axes = signature_exchange_axes(n, &l->signatures[node]);
    int workspace = emit_workspace(l, operation, boxes, FORWARD);
    for (int phase = 0; phase < operation->phases[FORWARD]; phase++) {
        forward_emit_phase(l, node, phase, &output, statistics, workspace);
        for (int i = 0; i < operation->statistic_count[FORWARD] && axes; i++)
            if (operation->statistics[FORWARD][i].phase == phase)
                emit_all_reduce(l, emit_group(l, axes), operation->statistics[FORWARD][i].reduction,
                                &statistics[i]);
    }
    l->homes[tensor] = (struct held){tensor, l->signatures[node].operand[last], output};
    return 0;
}

int block_forward(struct lowering *l, int index)
{
    const struct block *block = &l->graph->blocks[index];
    emit_room(l, index);
    l->versions.count = 0;
    int rc = block_gather_all(l, index, NULL);
    for (int n = block->node_first; n < block->node_first + block->node_count && rc == 0; n++)
        rc = forward_node(l, n);
    return rc;
}

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
static void recompute_choose(const struct graph *graph, const struct block *block,
                             enum recompute recompute, bool *wanted, bool *again)
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
static int recompute_refresh(struct lowering *l, int node, const bool *again)
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
static void recompute_keep_sums(struct lowering *l, int node, const bool *again)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < n->operation->input_count; i++) {
        int tensor = n->operands[i], producer = l->graph->tensors[tensor].producer;
        const struct held *home = &l->homes[tensor];
        const struct fetched *fetched = &l->fetched[node][i];
        if (home->tensor == tensor && home->placement.partial && (producer < 0 || !again[producer]))
            block_add_version(l, tensor, &fetched->placement, &fetched->piece);
    }
}

/* Before a block's backward, runs again what its forward did not save. */
static int recompute_block(struct lowering *l, int index)
{
    enum recompute recompute = l->plan->blocks[index].recompute;
    const struct block *block = &l->graph->blocks[index];
    if (recompute == RECOMPUTE_NONE)
        return 0;
    bool *wanted = xcalloc(l->graph->tensor_count, sizeof *wanted);
    bool *again = xcalloc(l->graph->node_count, sizeof *again);
    int end = block->node_first + block->node_count, rc = 0;
    recompute_choose(l->graph, block, recompute, wanted, again);
    for (int n = block->node_first; n < end; n++)
        if (again[n])
            recompute_keep_sums(l, n, again);
    for (int n = block->node_first; n < end && rc == 0; n++)
        if (again[n])
            rc = forward_node(l, n);
    for (int n = block->node_first; n < end && rc == 0; n++)
        if (!again[n])
            rc = recompute_refresh(l, n, again);
    free(wanted);
    free(again);
    return rc;
}

/* Do two kinds of recomputation run the same nodes again? */
static bool recompute_is_like(const struct graph *graph, const struct block *block,
                              enum recompute a, enum recompute b)
{
    bool *wanted[2], *again[2];
    const enum recompute recompute[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        wanted[i] = xcalloc(graph->tensor_count, sizeof *wanted[i]);
        again[i] = xcalloc(graph->node_count, sizeof *again[i]);
        recompute_choose(graph, block, recompute[i], wanted[i], again[i]);
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
           !recompute_is_like(graph, &graph->blocks[index], (enum recompute)first, recompute))
        first++;
    return (enum recompute)first;
}

static struct held *backward_find(struct lowering *l, int tensor, const struct placement *placement)
{
    for (size_t i = 0; i < l->arriving.count; i++) {
        struct held *held = &l->arriving.items[i];
        if (held->tensor == tensor && (!placement || placement_equal(&held->placement, placement)))
            return held;
    }
    return NULL;
}

void backward_arrive(struct lowering *l, int tensor, const struct placement *placement,
                     const struct piece *piece)
{
    struct held_list *list = &l->arriving;
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = (struct held){tensor, *placement, *piece};
    l->shares[piece->buffer]++;
}

/* Removes the entry from the list. The order is kept because it is the order of summation. */
static struct held backward_take(struct lowering *l, struct held *held)
{
    struct held taken = *held;
    size_t index = (size_t)(held - l->arriving.items);
    memmove(held, held + 1, (l->arriving.count - index - 1) * sizeof *held);
    l->arriving.count--;
    l->shares[taken.piece.buffer]--;
    return taken;
}

void backward_pass(struct lowering *l, int tensor)
{
    for (size_t i = 0; i < l->arriving.count; i++)
        if (l->arriving.items[i].tensor == tensor)
            emit_use(l, l->arriving.items[i].piece.buffer);
}

/* The piece if it may be written, else a copy: when more than `shares` contributions share its
 * buffer, others still need its content. */
static struct piece backward_own(struct lowering *l, int tensor, const struct piece *piece,
                                 int shares)
{
    if (l->shares[piece->buffer] <= shares)
        return *piece;
    struct piece copy = emit_new(l, REGION_TRANSIENT, tensor, &piece->box);
    emit_copy(l, piece, &copy, &piece->box);
    return copy;
}

int backward_collect(struct lowering *l, int tensor, const struct placement *wanted, bool *any,
                     struct piece *out)
{
    struct shape shape = tensor_shape(l, tensor);
    struct held *held;
    *any = false;
    while ((held = backward_find(l, tensor, NULL)) != NULL) {
        struct held one = backward_take(l, held);
        int rc = move_within(l, &shape, tensor, &one.placement, wanted, &one.piece);
        if (rc < 0)
            return error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[tensor].name);
        if (*any) {
            *out = backward_own(l, tensor, out, 0);
            emit_add(l, &one.piece, out);
        } else {
            *out = one.piece;
        }
        *any = true;
    }
    return 0;
}

/* Finds what backward reads: saved operands and statistics, gathered again where needed, and the
 * weights. Sets bit i of *present for every piece that is there. */
static int backward_operands(struct lowering *l, int node, struct piece *pieces, unsigned *present)
{
    const struct node *n = &l->graph->nodes[node];
    const struct operation *operation = n->operation;
    int last = operation_output(operation);
    *present = 0;
    for (int i = 0; i < last; i++) {
        bool weight = i >= operation->input_count;
        if (!weight && !(operation->saved >> i & 1))
            continue;
        const struct fetched *fetched = &l->fetched[node][i];
        pieces[i] = fetched->piece;
        *present |= 1u << i;
        int rc = 0;
        if (fetched->again)
            rc = weight ? block_gather(l, weights_use(l, node, i), &pieces[i])
                        : blocks_fetch(l, n->operands[i], &fetched->placement, &pieces[i]);
        if (rc < 0)
            return rc;
    }
    if (operation->saved >> last & 1) {
        pieces[last] = l->homes[n->operands[last]].piece;
        *present |= 1u << last;
    }
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++) {
        if (operation->saved >> (last + 1 + i) & 1) {
            pieces[last + 1 + i] = l->statistics[node][i];
            *present |= 1u << (last + 1 + i);
        }
    }
    return 0;
}

/* The gradient pieces of a kernel, present ones as bits, and those that it adds to. */
struct leaving {
    struct piece pieces[VIEWS_MAX];
    unsigned present, accumulate;
};

static void backward_input(struct lowering *l, int node, int operand, const struct box *box,
                           const struct piece *gradient, struct leaving *leaving)
{
    const struct node *n = &l->graph->nodes[node];
    const struct placement *placement = &l->signatures[node].gradient[operand];
    int tensor = n->operands[operand];
    struct held *held = backward_find(l, tensor, placement);
    if (held) {
        /* One share is this entry itself; any other still needs the buffer as it is. */
        struct piece piece = backward_own(l, tensor, &held->piece, 1);
        if (piece.buffer != held->piece.buffer) {
            l->shares[held->piece.buffer]--;
            l->shares[piece.buffer]++;
            held->piece = piece;
        }
    }
    if (n->operation->passes >> operand & 1) {
        assert(placement_equal(placement,
                               &l->signatures[node].gradient[operation_output(n->operation)]));
        if (held)
            emit_add(l, gradient, &held->piece);
        else
            backward_arrive(l, tensor, placement, gradient);
        return;
    }
    leaving->present |= 1u << operand;
    if (held) {
        leaving->accumulate |= 1u << operand;
        leaving->pieces[operand] = held->piece;
        return;
    }
    leaving->pieces[operand] = emit_new(l, REGION_TRANSIENT, tensor, box);
    backward_arrive(l, tensor, placement, &leaving->pieces[operand]);
}

/* Kernels get the boxes of all operands, including those whose data they do not read. */
static void backward_emit_phase(struct lowering *l, int node, int phase, const struct box *boxes,
                                const struct piece *operands, unsigned present,
                                const struct leaving *leaving, int workspace)
{
    const struct operation *operation = l->graph->nodes[node].operation;
    int last = operation_output(operation);
    struct instruction *kernel = emit(l, INSTRUCTION_KERNEL);
    kernel->kernel.node = node;
    kernel->kernel.phase = phase;
    kernel->kernel.direction = BACKWARD;
    kernel->kernel.accumulate = leaving->accumulate;
    kernel->kernel.workspace = workspace;
    for (int i = 0; i < VIEWS_MAX; i++) {
        if (present >> i & 1)
            emit_piece(l, i, &operands[i]);
        else if (i <= last)
            emit_piece(l, i, &(struct piece){.buffer = -1, .box = boxes[i]});
    }
    for (int i = 0; i < VIEWS_MAX; i++) {
        if (!(leaving->present >> i & 1))
            continue;
        int statistic = i - last - 1;
        if (statistic < 0 || operation->statistics[BACKWARD][statistic].phase <= phase)
            emit_piece(l, VIEWS_MAX + i, &leaving->pieces[i]);
    }
    emit_use(l, workspace);
}

/* Does backward need a kernel, or does every gradient pass through unchanged? */
static bool backward_computes(const struct node *node)
{
    for (int i = 0; i < operation_output(node->operation); i++)
        if (node_differentiates(node, i) && !(node->operation->passes >> i & 1))
            return true;
    return false;
}

static void backward_emit_kernels(struct lowering *l, int node, const struct box *boxes,
                                  const struct piece *operands, unsigned present,
                                  struct leaving *leaving)
{
    const struct node *n = &l->graph->nodes[node];
    const struct operation *operation = n->operation;
    int last = operation_output(operation);
    for (int i = 0; i < operation->statistic_count[BACKWARD]; i++) {
        struct box box = signature_statistic_box(n, &operation->statistics[BACKWARD][i], boxes);
        leaving->pieces[last + 1 + i] = emit_new(l, REGION_TRANSIENT, -1, &box);
        leaving->present |= 1u << (last + 1 + i);
    }
    unsigned axes = signature_exchange_axes(n, &l->signatures[node]);
    int workspace = emit_workspace(l, operation, boxes, BACKWARD);
    for (int phase = 0; phase < operation->phases[BACKWARD]; phase++) {
        backward_emit_phase(l, node, phase, boxes, operands, present, leaving, workspace);
        for (int i = 0; i < operation->statistic_count[BACKWARD] && axes; i++)
            if (operation->statistics[BACKWARD][i].phase == phase)
                emit_all_reduce(l, emit_group(l, axes),
                                operation->statistics[BACKWARD][i].reduction,
                                &leaving->pieces[last + 1 + i]);
    }
}

static int backward_node(struct lowering *l, int node)
{
    const struct node *n = &l->graph->nodes[node];
    const struct operation *operation = n->operation;
    int last = operation_output(operation), rc;
    struct piece gradient = {0}, operands[VIEWS_MAX];
    struct leaving leaving = {0};
    unsigned present = 0;
    bool any = false;
    if (!operation->is_loss) {
        rc = backward_collect(l, n->operands[last], &l->signatures[node].gradient[last], &any,
                              &gradient);
        if (rc < 0 || !any)
            return rc;                /* no user of the output passed a gradient back */
        l->shares[gradient.buffer]++; /* this node reads it until its end */
        leaving.pieces[last] = gradient;
        leaving.present |= 1u << last;
    }
    if (backward_computes(n)) {
        rc = backward_operands(l, node, operands, &present);
        if (rc < 0)
            return rc;
    }

    struct box boxes[OPERANDS_MAX];
    node_boxes(l, node, boxes);
    for (int i = 0; i < operation->input_count; i++)
        if (node_differentiates(n, i))
            backward_input(l, node, i, &boxes[i], &gradient, &leaving);
    for (int i = operation->input_count; i < last; i++) {
        leaving.pieces[i] = weights_use(l, node, i)->gradient;
        leaving.present |= 1u << i;
        leaving.accumulate |= 1u << i;
    }
    if (backward_computes(n))
        backward_emit_kernels(l, node, boxes, operands, present, &leaving);
    if (any)
        l->shares[gradient.buffer]--;
    return 0;
}

int block_backward(struct lowering *l, int index)
{
    const struct block *block = &l->graph->blocks[index];
    emit_room(l, index);
    l->versions.count = 0;
    gradients_open_block(l, index);
    int rc = block_gather_all(l, index, backward_computes);
    if (rc == 0)
        rc = recompute_block(l, index);
    for (int n = block->node_first + block->node_count - 1; n >= block->node_first && rc == 0; n--)
        rc = backward_node(l, n);
    if (rc == 0)
        rc = gradients_close_block(l, index);
    return rc;
}
