/* backward.c - lowers a block's backward: gradients through its nodes, last node first.
 *
 * A tensor with several users gets a gradient contribution from each. Contributions in the same
 * placement are summed first and then redistributed once. A gradient that passes through a node
 * unchanged (the residual stream) stays in the same buffer; it is copied only when somebody would
 * add to it while another still needs to read it. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <string.h>

static struct held *find_arriving(struct lowering *l, int tensor, const struct placement *placement)
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
static struct held take(struct lowering *l, struct held *held)
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
static struct piece own(struct lowering *l, int tensor, const struct piece *piece, int shares)
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
    while ((held = find_arriving(l, tensor, NULL)) != NULL) {
        struct held one = take(l, held);
        int rc = move_within(l, &shape, tensor, &one.placement, wanted, &one.piece);
        if (rc < 0)
            return error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[tensor].name);
        if (*any) {
            *out = own(l, tensor, out, 0);
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
static int operand_pieces(struct lowering *l, int node, struct piece *pieces, unsigned *present)
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
            rc = weight ? blocks_gather(l, weights_use(l, node, i), &pieces[i])
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

static void input_gradient(struct lowering *l, int node, int operand, const struct box *box,
                           const struct piece *gradient, struct leaving *leaving)
{
    const struct node *n = &l->graph->nodes[node];
    const struct placement *placement = &l->signatures[node].gradient[operand];
    int tensor = n->operands[operand];
    struct held *held = find_arriving(l, tensor, placement);
    if (held) {
        /* One share is this entry itself; any other still needs the buffer as it is. */
        struct piece piece = own(l, tensor, &held->piece, 1);
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
static void emit_phase(struct lowering *l, int node, int phase, const struct box *boxes,
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
static bool computes(const struct node *node)
{
    for (int i = 0; i < operation_output(node->operation); i++)
        if (node_differentiates(node, i) && !(node->operation->passes >> i & 1))
            return true;
    return false;
}

static void emit_kernels(struct lowering *l, int node, const struct box *boxes,
                         const struct piece *operands, unsigned present, struct leaving *leaving)
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
        emit_phase(l, node, phase, boxes, operands, present, leaving, workspace);
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
    if (computes(n)) {
        rc = operand_pieces(l, node, operands, &present);
        if (rc < 0)
            return rc;
    }

    struct box boxes[OPERANDS_MAX];
    node_boxes(l, node, boxes);
    for (int i = 0; i < operation->input_count; i++)
        if (node_differentiates(n, i))
            input_gradient(l, node, i, &boxes[i], &gradient, &leaving);
    for (int i = operation->input_count; i < last; i++) {
        leaving.pieces[i] = weights_use(l, node, i)->gradient;
        leaving.present |= 1u << i;
        leaving.accumulate |= 1u << i;
    }
    if (computes(n))
        emit_kernels(l, node, boxes, operands, present, &leaving);
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
    int rc = blocks_gather_all(l, index, computes);
    if (rc == 0)
        rc = recompute_block(l, index);
    for (int n = block->node_first + block->node_count - 1; n >= block->node_first && rc == 0; n--)
        rc = backward_node(l, n);
    if (rc == 0)
        rc = gradients_close_block(l, index);
    return rc;
}
