/* joints.c - what lies between blocks: the joints inside a stage, and the crossings between stages.
 *
 * A block finds its input in its entry placement, in a buffer of exactly its size that is kept for
 * backward, and leaves its output as its last node made it. The joint between two blocks
 * redistributes where these differ: the tensor in forward, its gradient in backward. So a block is
 * lowered in the same way whatever stands before and after it, and the cost of a program is the sum
 * over its blocks and joints. Joints are rooms of their own, in which nothing inside a block is
 * alive. */
#include "common/program/lowering.h"

#include <assert.h>

int joint_tensor(const struct lowering *l, int block)
{
    return block > 0 ? l->graph->blocks[block - 1].output : -1;
}

struct placement joint_entry(const struct lowering *l, int index)
{
    const struct block *block = &l->graph->blocks[index];
    for (int n = block->node_first; n < block->node_first + block->node_count; n++)
        for (int i = 0; i < l->graph->nodes[n].operation->input_count; i++)
            if (l->graph->nodes[n].operands[i] == joint_tensor(l, index))
                return placement_settled(&l->signatures[n].operand[i]);
    assert(!"a block that does not read the block before it");
    return (struct placement){0};
}

/* The placement in which a block's output leaves the stage: as its last node makes it, reduced. */
static struct placement exit_placement(const struct lowering *l, int block)
{
    int producer = l->graph->tensors[l->graph->blocks[block].output].producer;
    int last = operation_output(l->graph->nodes[producer].operation);
    return placement_settled(&l->signatures[producer].operand[last]);
}

const struct placement *joint_wanted(const struct lowering *l, int block)
{
    int producer = l->graph->tensors[l->graph->blocks[block].output].producer;
    return &l->signatures[producer].gradient[operation_output(l->graph->nodes[producer].operation)];
}

/* Copies a slice that still lies in the buffer of the whole into one of its own size. */
static void fit(struct lowering *l, int tensor, struct piece *piece)
{
    const struct buffer *buffer = &l->program->buffers[piece->buffer];
    if (buffer->bytes == (uint64_t)box_count(&piece->box) * (uint64_t)buffer->element_bytes)
        return;
    struct piece own = emit_new(l, REGION_TRANSIENT, tensor, &piece->box);
    emit_copy(l, piece, &own, &piece->box);
    *piece = own;
}

/* Makes the piece the home of a block's input, and saves it for backward. */
static void enter(struct lowering *l, int tensor, const struct placement *entry,
                  const struct piece *piece)
{
    l->homes[tensor] = (struct held){tensor, *entry, *piece};
    l->program->buffers[piece->buffer].region = REGION_SAVED;
}

int joint_forward(struct lowering *l, int block)
{
    int tensor = joint_tensor(l, block);
    struct placement entry = joint_entry(l, block);
    struct shape shape = tensor_shape(l, tensor);
    struct piece piece = l->homes[tensor].piece;
    emit_room(l, block);
    emit_use(l, piece.buffer); /* alive up to here even on a rank without samples */
    int rc = move_within(l, &shape, tensor, &l->homes[tensor].placement, &entry, &piece);
    if (rc < 0)
        return error_prefix(l->err, rc, "tensor %s", l->graph->tensors[tensor].name);
    fit(l, tensor, &piece);
    enter(l, tensor, &entry, &piece);
    return 0;
}

int joint_backward(struct lowering *l, int block)
{
    int tensor = l->graph->blocks[block].output;
    const struct placement *wanted = joint_wanted(l, block);
    struct piece piece;
    bool any;
    emit_room(l, block);
    backward_pass(l, tensor); /* alive up to here, as in joint_forward() */
    int rc = backward_collect(l, tensor, wanted, &any, &piece);
    if (rc < 0 || !any)
        return rc;
    fit(l, tensor, &piece);
    backward_arrive(l, tensor, wanted, &piece);
    return 0;
}

int joint_leave(struct lowering *l, int stage)
{
    int next = l->plan->stages[stage + 1].block_first, tensor = joint_tensor(l, next);
    struct placement from = exit_placement(l, next - 1), to = joint_entry(l, next);
    struct shape shape = tensor_shape(l, tensor);
    struct piece piece = {0};
    emit_room(l, l->stage == stage ? next - 1 : next);
    l->versions.count = 0;
    if (l->stage == stage) {
        int rc = blocks_fetch(l, tensor, &from, &piece);
        if (rc < 0)
            return rc;
    }
    move_across(l, &shape, tensor, PURPOSE_ACTIVATION, 0, stage, &from, stage + 1, &to, &piece);
    emit_use(l, piece.buffer); /* alive up to here on all ranks, even if a replica sends it */
    if (l->stage == stage + 1)
        enter(l, tensor, &to, &piece);
    return 0;
}

int joint_return(struct lowering *l, int stage)
{
    int next = l->plan->stages[stage + 1].block_first, tensor = joint_tensor(l, next);
    struct placement from = joint_entry(l, next);
    const struct placement *to = joint_wanted(l, next - 1);
    struct shape shape = tensor_shape(l, tensor);
    struct piece piece = {0};
    bool any = true;
    emit_room(l, l->stage == stage ? next - 1 : next);
    if (l->stage == stage + 1) {
        int rc = backward_collect(l, tensor, &from, &any, &piece);
        if (rc < 0)
            return rc;
    }
    assert(any);
    move_across(l, &shape, tensor, PURPOSE_GRADIENT, 0, stage + 1, &from, stage, to, &piece);
    emit_use(l, piece.buffer);
    if (l->stage == stage)
        backward_arrive(l, tensor, to, &piece);
    return 0;
}

int joints_forward(struct lowering *l)
{
    const struct plan_stage *stage = &l->plan->stages[l->stage];
    int end = stage->block_first + stage->block_count, rc = 0;
    emit_section(l, SECTION_FORWARD);
    if (l->stage > 0)
        rc = joint_leave(l, l->stage - 1);
    for (int b = stage->block_first; b < end && rc == 0; b++) {
        if (b > stage->block_first)
            rc = joint_forward(l, b);
        if (rc == 0)
            rc = block_forward(l, b);
    }
    if (rc == 0 && l->stage + 1 < l->plan->stage_count)
        rc = joint_leave(l, l->stage);
    return rc;
}

int joints_backward(struct lowering *l)
{
    const struct plan_stage *stage = &l->plan->stages[l->stage];
    int end = stage->block_first + stage->block_count, rc = 0;
    emit_section(l, SECTION_BACKWARD);
    if (l->stage + 1 < l->plan->stage_count)
        rc = joint_return(l, l->stage);
    for (int b = end - 1; b >= stage->block_first && rc == 0; b--) {
        if (b < end - 1)
            rc = joint_backward(l, b);
        if (rc == 0)
            rc = block_backward(l, b);
    }
    if (rc == 0 && l->stage > 0)
        rc = joint_return(l, l->stage - 1);
    return rc;
}
