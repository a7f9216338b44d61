/* blocks.c - lowers a block's forward for one micro-batch.
 *
 * Every tensor has a home: the placement in which it was made or arrived. A node fetches its inputs
 * in the placements that its roles ask for; a redistributed version is shared by all nodes of the
 * block. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <string.h>

void node_boxes(const struct lowering *l, int node, struct box *boxes)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < operation_operands(n->operation); i++) {
        struct shape shape = shape_of(&l->graph->tensors[n->operands[i]], l->program->samples);
        boxes[i] = own_slice(l, &shape, &l->signatures[node].operand[i]);
    }
}

static struct held *find_version(struct lowering *l, int tensor, const struct placement *placement)
{
    for (size_t i = 0; i < l->versions.count; i++) {
        struct held *held = &l->versions.items[i];
        if (held->tensor == tensor && placement_equal(&held->placement, placement))
            return held;
    }
    return NULL;
}

void blocks_add(struct lowering *l, int tensor, const struct placement *placement,
                const struct piece *piece)
{
    struct held_list *list = &l->versions;
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = (struct held){tensor, *placement, *piece};
}

static struct piece load(struct lowering *l, int tensor, const struct placement *placement)
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
    if ((version = find_version(l, tensor, placement)) != NULL) {
        *out = version->piece;
        return 0;
    }
    if (l->graph->tensors[tensor].kind == TENSOR_DATA) {
        *out = load(l, tensor, placement);
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
    blocks_add(l, tensor, placement, out);
    return 0;
}

int blocks_gather(struct lowering *l, const struct weight_use *use, struct piece *out)
{
    emit_beside(l);
    int rc = blocks_fetch(l, use->tensor, &use->compute, out);
    emit_at_once(l);
    return rc;
}

int blocks_gather_all(struct lowering *l, int index, bool (*needs)(const struct node *))
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
                rc = blocks_gather(l, weights_use(l, n, i), &piece);
    }
    return rc;
}

/* Is the path only all-gathers? Then backward can gather again from the smaller piece, instead of
 * keeping the larger one. */
static bool only_gathers(struct lowering *l, int tensor, const struct placement *from,
                         const struct placement *to)
{
    const struct step *steps;
    int count = move_route(l, tensor, from, to, &steps);
    for (int i = 0; i < count; i++)
        if (steps[i].kind != STEP_ALL_GATHER)
            return false;
    return count > 0;
}

static int fetch_inputs(struct lowering *l, int node)
{
    const struct node *n = &l->graph->nodes[node];
    for (int i = 0; i < n->operation->input_count; i++) {
        struct fetched *fetched = &l->fetched[node][i];
        int tensor = n->operands[i];
        fetched->placement = l->signatures[node].operand[i];
        fetched->again = l->homes[tensor].tensor == tensor && !l->homes[tensor].placement.partial &&
                         only_gathers(l, tensor, &l->homes[tensor].placement, &fetched->placement);
        int rc = blocks_fetch(l, tensor, &fetched->placement, &fetched->piece);
        if (rc < 0)
            return rc;
    }
    for (int i = n->operation->input_count; i < operation_output(n->operation); i++) {
        struct fetched *fetched = &l->fetched[node][i];
        const struct weight_use *use = weights_use(l, node, i);
        *fetched = (struct fetched){use->compute, use->weight, weights_gathered(l, use)};
        int rc = fetched->again ? blocks_gather(l, use, &fetched->piece) : 0;
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
static void emit_phase(struct lowering *l, int node, int phase, const struct piece *output,
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

int forward_node(struct lowering *l, int node)
{
    const struct node *n = &l->graph->nodes[node];
    const struct operation *operation = n->operation;
    int rc = fetch_inputs(l, node);
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
        emit_phase(l, node, phase, &output, statistics, workspace);
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
    int rc = blocks_gather_all(l, index, NULL);
    for (int n = block->node_first; n < block->node_first + block->node_count && rc == 0; n++)
        rc = forward_node(l, n);
    return rc;
}
