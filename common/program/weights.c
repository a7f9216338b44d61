/* weights.c - brings weights to their users once per step, and runs the optimizer at its end.
 *
 * The first user of a weight owns it: its stage keeps the master, the moments and the reduced
 * gradient in the storage placement. With ZeRO the storage placement also splits the weight's first
 * dim by the axes over which its gradient is partial, minor-most. For every other way in which a
 * stage uses the weight, a copy travels there and a gradient travels back. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>

static int add_use(struct lowering *l, int node, int operand)
{
    const struct node *n = &l->graph->nodes[node];
    int tensor = n->operands[operand], stage = l->plan->blocks[n->block].stage;
    const struct placement *compute = &l->signatures[node].operand[operand];
    const struct placement *leaving = &l->signatures[node].gradient[operand];
    int last = -1;
    /* The chain of a tensor's uses begins with its owner; without an owner it is empty. */
    for (int i = l->owner[tensor]; i >= 0; i = l->uses[i].next) {
        if (l->uses[i].stage == stage && placement_equal(&l->uses[i].compute, compute) &&
            placement_equal(&l->uses[i].leaving, leaving))
            return i;
        last = i;
    }
    if (last >= 0)
        l->uses[last].next = (int)l->use_count;
    l->uses = grow(l->uses, l->use_count, &l->use_capacity, sizeof *l->uses);
    l->uses[l->use_count] = (struct weight_use){.tensor = tensor,
                                                .stage = stage,
                                                .node = node,
                                                .compute = *compute,
                                                .leaving = *leaving,
                                                .bucket = -1,
                                                .next = -1};
    return (int)l->use_count++;
}

int weights_zero(const struct lowering *l, const struct weight_use *owner)
{
    return l->plan->blocks[l->graph->nodes[owner->node].block].zero;
}

bool weights_here(const struct lowering *l, const struct weight_use *use)
{
    return use->stage == l->stage;
}

const struct weight_use *weights_owner(const struct lowering *l, int tensor)
{
    return &l->uses[l->owner[tensor]];
}

struct piece weights_state(struct lowering *l, int tensor, const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = own_slice(l, &shape, placement);
    return emit_new(l, REGION_STATE, tensor, &box);
}

void weights_keep(struct lowering *l, const struct piece *piece)
{
    struct buffer *buffer = &l->program->buffers[piece->buffer];
    buffer->region = REGION_STATE;
    buffer->beside = false;
}

static struct placement storage_placement(const struct lowering *l, const struct weight_use *use)
{
    struct placement storage = placement_settled(&use->leaving);
    int axes = stage_mesh(l, use->stage)->axes;
    for (int axis = axes - 1; axis >= 0 && weights_zero(l, use) > 0; axis--)
        if (use->leaving.partial >> axis & 1)
            placement_append(&storage, 0, axis);
    return storage;
}

int weights_find(struct lowering *l)
{
    l->storage = xcalloc(l->graph->tensor_count, sizeof *l->storage);
    l->owner = xcalloc(l->graph->tensor_count, sizeof *l->owner);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        l->owner[t] = -1;
    for (size_t n = 0; n < l->graph->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        if (!part_has_weights(l, node->block))
            continue;
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            int use = add_use(l, (int)n, i), tensor = node->operands[i];
            if (l->owner[tensor] < 0) {
                l->owner[tensor] = use;
                l->storage[tensor] = storage_placement(l, &l->uses[use]);
            }
        }
    }
    return 0;
}

struct weight_use *weights_use(struct lowering *l, int node, int operand)
{
    return &l->uses[add_use(l, node, operand)];
}

bool weights_gathered(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    return weights_zero(l, owner) == 3 && owner->stage == use->stage &&
           !placement_equal(&use->compute, &l->storage[use->tensor]);
}

static void add_parameter(struct lowering *l, int tensor)
{
    struct program *p = l->program;
    p->parameters =
        grow(p->parameters, p->parameter_count, &p->parameter_capacity, sizeof *p->parameters);
    struct piece master = weights_state(l, tensor, &l->storage[tensor]);
    p->parameters[p->parameter_count++] = (struct parameter){
        .tensor = tensor,
        .box = master.box,
        .master = master.buffer,
        .counted = does_for_all(l, ~placement_split_axes(&l->storage[tensor])),
    };
}

static int compare_tensors(const void *a, const void *b)
{
    return *(const int *)a - ((const struct parameter *)b)->tensor;
}

/* Parameters were added in the order of their tensors. */
static struct piece master_piece(const struct lowering *l, int tensor)
{
    const struct program *p = l->program;
    const struct parameter *parameter =
        bsearch(&tensor, p->parameters, p->parameter_count, sizeof *p->parameters, compare_tensors);
    return (struct piece){.buffer = parameter->master, .box = parameter->box};
}

/* The metrics belong to no block: they are part of a whole program, and of PART_BASE. */
static bool has_metrics(const struct lowering *l)
{
    return !l->part || l->part->kind == PART_BASE;
}

void weights_buffers(struct lowering *l)
{
    struct program *p = l->program;
    l->block = -1;
    p->metrics = emit_buffer(l, REGION_STATE, has_metrics(l) ? METRICS : 0, -1);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        if (l->owner[t] >= 0 && weights_here(l, weights_owner(l, (int)t)))
            add_parameter(l, (int)t);
    for (size_t u = 0; u < l->use_count; u++)
        if (weights_here(l, &l->uses[u]))
            gradients_place(l, &l->uses[u]);
    for (size_t i = 0; i < p->parameter_count; i++) {
        int64_t count = box_count(&p->parameters[i].box);
        p->parameters[i].first = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
        p->parameters[i].second = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
    }
}

/* What kernels read: the master itself, or, if the graph computes with narrower elements, a copy
 * that is made every step. */
static struct piece narrow(struct lowering *l, int tensor)
{
    struct piece master = master_piece(l, tensor);
    if (l->graph->element_bytes == ELEMENT_BYTES)
        return master;
    struct piece copy = emit_new(l, REGION_TRANSIENT, tensor, &master.box);
    emit_copy(l, &master, &copy, &master.box);
    weights_keep(l, &copy);
    return copy;
}

/* Brings the weight from its owner to this use. */
static int travel(struct lowering *l, struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    const struct placement *storage = &l->storage[use->tensor];
    struct shape shape = tensor_shape(l, use->tensor);
    struct piece piece = {0};
    int rc = 0;
    if (weights_here(l, owner))
        piece = l->homes[use->tensor].piece;
    emit_beside(l);
    if (owner->stage != use->stage)
        move_across(l, &shape, use->tensor, PURPOSE_WEIGHT, (int)(use - l->uses), owner->stage,
                    storage, use->stage, &use->compute, &piece);
    else if (weights_here(l, use))
        rc = move_within(l, &shape, use->tensor, storage, &use->compute, &piece);
    emit_at_once(l);
    if (rc < 0)
        return error_prefix(l->err, rc, "weight %s", l->graph->tensors[use->tensor].name);
    if (weights_here(l, use)) {
        use->weight = piece;
        weights_keep(l, &piece);
    }
    return 0;
}

int weights_travel(struct lowering *l)
{
    int block = -1;
    emit_section(l, SECTION_WEIGHTS);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        if (l->owner[t] >= 0 && weights_here(l, weights_owner(l, (int)t)))
            l->homes[t] = (struct held){(int)t, l->storage[t], narrow(l, (int)t)};
    for (size_t u = 0; u < l->use_count; u++) {
        if (weights_gathered(l, &l->uses[u]))
            continue;
        if (l->graph->nodes[l->uses[u].node].block != block)
            emit_room(l, -1); /* so that a block waits for its own weights only */
        block = l->graph->nodes[l->uses[u].node].block;
        int rc = travel(l, &l->uses[u]);
        if (rc < 0)
            return rc;
    }
    if (has_metrics(l))
        emit_clear(l, l->program->metrics, METRICS);
    return 0;
}

void weights_update(struct lowering *l)
{
    struct program *p = l->program;
    emit_section(l, SECTION_METRICS);
    struct piece metrics = {.buffer = p->metrics, .box = {.dims = 1, .high = {METRICS}}};
    if (has_metrics(l))
        emit_all_reduce(l, emit_group_all(l), REDUCTION_SUM, &metrics);
    emit_section(l, SECTION_UPDATE);
    for (size_t i = 0; i < p->parameter_count; i++) {
        emit(l, INSTRUCTION_UPDATE)->parameter = (int)i;
        emit_piece(l, 0, &p->parameters[i].gradient);
        emit_use(l, p->parameters[i].master);
        emit_use(l, p->parameters[i].first);
        emit_use(l, p->parameters[i].second);
    }
}
