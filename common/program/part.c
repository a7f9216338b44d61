/* part.c - lowers a block, a joint or a crossing on its own, exactly as in a whole program.
 *
 * What a part finds (the output of the block before, the gradient from the block after) is a buffer
 * that no instruction makes. Every byte and every instruction of a program belongs to exactly one
 * part: a block's input counts with the joint that brings it, its output with the joint that takes
 * it. */
#include "common/program/lowering.h"

#include <assert.h>
#include <stdlib.h>

#define WAYS_MAX 4

bool part_has_weights(const struct lowering *l, int block)
{
    const struct part *part = l->part;
    return !part || (part->kind == PART_BLOCK && (block == part->index || block == part->tied));
}

bool part_concerns(const struct lowering *l, int block)
{
    const struct part *part = l->part;
    if (!part || part->kind == PART_BASE || part->kind == PART_BLOCK)
        return part_has_weights(l, block);
    int after =
        part->kind == PART_JOINT ? part->index + 1 : l->plan->stages[part->index + 1].block_first;
    return block == after - 1 || block == after;
}

/* A buffer that the part finds, made outside of it. */
static struct piece find_given(struct lowering *l, int tensor, const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = own_slice(l, &shape, placement);
    return emit_new(l, REGION_TRANSIENT, tensor, &box);
}

/* Sets up a block's output as that block leaves it. Returns the buffer. */
static int find_output(struct lowering *l, int block)
{
    int tensor = l->graph->blocks[block].output;
    int producer = l->graph->tensors[tensor].producer;
    int last = operation_output(l->graph->nodes[producer].operation);
    const struct placement *made = &l->signatures[producer].operand[last];
    struct piece piece = find_given(l, tensor, made);
    l->homes[tensor] = (struct held){tensor, *made, piece};
    return piece.buffer;
}

/* The distinct placements in which a block produces its input's gradient, in order of backward.
 * Returns how many, at most `most`. */
static int gradient_ways(const struct lowering *l, int index, struct placement *ways, int most)
{
    const struct block *block = &l->graph->blocks[index];
    int count = 0;
    for (int n = block->node_first + block->node_count - 1; n >= block->node_first; n--) {
        const struct node *node = &l->graph->nodes[n];
        for (int i = 0; i < node->operation->input_count; i++) {
            const struct placement *leaves = &l->signatures[n].gradient[i];
            int known = 0;
            if (node->operands[i] != joint_tensor(l, index) || !node_differentiates(node, i))
                continue;
            while (known < count && !placement_equal(&ways[known], leaves))
                known++;
            assert(known < most && "a block that reads its input in many ways");
            ways[known] = *leaves;
            count = known == count ? count + 1 : count;
        }
    }
    return count;
}

/* Sets up the gradient of a block's input as that block leaves it: one contribution for each
 * placement. */
static void find_gradients(struct lowering *l, int block)
{
    struct placement ways[WAYS_MAX] = {0};
    int count = gradient_ways(l, block, ways, WAYS_MAX), tensor = joint_tensor(l, block);
    for (int i = 0; i < count; i++) {
        struct piece piece = find_given(l, tensor, &ways[i]);
        backward_arrive(l, tensor, &ways[i], &piece);
    }
}

/* Lowers a block. The bytes of its input, and of its output unless saved, count with its
 * neighbours, so they are set to 0. */
static int build_block(struct lowering *l, int block)
{
    int input = joint_tensor(l, block), output = l->graph->blocks[block].output, rc;
    emit_section(l, SECTION_FORWARD);
    if (input >= 0) {
        struct placement entry = joint_entry(l, block);
        struct piece piece = find_given(l, input, &entry);
        l->homes[input] = (struct held){input, entry, piece};
        l->program->buffers[piece.buffer].region = REGION_SAVED;
        l->program->buffers[piece.buffer].bytes = 0;
    }
    rc = block_forward(l, block);
    if (rc < 0)
        return rc;
    l->forward_room = l->room;
    emit_section(l, SECTION_BACKWARD);
    bool last = block == (int)l->graph->block_count - 1;
    if (!last) {
        const struct placement *wanted = joint_wanted(l, block);
        struct piece piece = find_given(l, output, wanted);
        backward_arrive(l, output, wanted, &piece);
    }
    rc = block_backward(l, block);
    if (rc < 0)
        return rc;
    emit_room(l, -1);
    backward_pass(l, input);
    if (!last && l->program->buffers[l->homes[output].piece.buffer].region == REGION_TRANSIENT)
        l->program->buffers[l->homes[output].piece.buffer].bytes = 0;
    return 0;
}

static int build_joint(struct lowering *l, int block)
{
    emit_section(l, SECTION_FORWARD);
    l->found = find_output(l, block);
    int rc = joint_forward(l, block + 1);
    if (rc < 0)
        return rc;
    emit_section(l, SECTION_BACKWARD);
    find_gradients(l, block + 1);
    rc = joint_backward(l, block);
    emit_room(l, -1);
    backward_pass(l, l->graph->blocks[block].output);
    return rc;
}

static int build_crossing(struct lowering *l, int stage)
{
    int block = l->plan->stages[stage + 1].block_first;
    emit_section(l, SECTION_FORWARD);
    if (l->stage == stage)
        l->found = find_output(l, block - 1);
    int rc = joint_leave(l, stage);
    if (rc < 0)
        return rc;
    emit_section(l, SECTION_BACKWARD);
    if (l->stage == stage + 1)
        find_gradients(l, block);
    rc = joint_return(l, stage);
    emit_room(l, -1);
    backward_pass(l, l->graph->blocks[block - 1].output);
    return rc;
}

int part_events(struct lowering *l)
{
    switch (l->part->kind) {
    case PART_BLOCK:
        return build_block(l, l->part->index);
    case PART_JOINT:
        return build_joint(l, l->part->index);
    case PART_CROSSING:
        return build_crossing(l, l->part->index);
    case PART_BASE:
        break;
    }
    emit_section(l, SECTION_FORWARD);
    emit_section(l, SECTION_BACKWARD);
    return 0;
}

static void fill(const struct lowering *l, struct lowered_part *out)
{
    const struct buffer *found = l->found >= 0 ? &l->program->buffers[l->found] : NULL;
    if (found && found->region == REGION_TRANSIENT)
        out->passing_bytes = arena_align(found->bytes);
    for (int room = 0; room <= l->room; room++) {
        if (room == l->forward_room)
            out->forward_bytes = l->room_bytes[room];
        else if (l->room_bytes[room] > out->other_bytes)
            out->other_bytes = l->room_bytes[room];
    }
}

int lower_part(const struct graph *graph, const struct plan *plan, int rank,
               const struct part *part, struct ways *ways, struct lowered_part *out,
               struct error *err)
{
    struct lowering l;
    *out = (struct lowered_part){0};
    lowering_init(&l, graph, plan, rank, ways, err);
    l.part = part;
    l.found = l.forward_room = -1;
    int rc = lowering_build(&l);
    if (rc == 0) {
        fill(&l, out);
        out->program = l.program;
        l.program = NULL;
    }
    lowering_finish(&l);
    return rc;
}

void lower_part_done(struct ways *ways, struct lowered_part *part)
{
    ways_give_back(ways, part->program);
    part->program = NULL;
}

struct part_ends lower_ends(const struct graph *graph, const struct plan *plan, int block)
{
    struct part part = {PART_BLOCK, block, -1};
    struct lowering l;
    int last = (int)graph->block_count - 1;
    lowering_init(&l, graph, plan, plan_stage_rank(plan, plan->blocks[block].stage), NULL, NULL);
    l.part = &part;
    struct part_ends ends = {0};
    lowering_signatures(&l);
    if (block > 0) {
        ends.input.entry = joint_entry(&l, block);
        gradient_ways(&l, block, ends.input.leaves, WAYS_MAX);
    }
    if (block < last) {
        int producer = graph->tensors[graph->blocks[block].output].producer;
        ends.output.made =
            l.signatures[producer].operand[operation_output(graph->nodes[producer].operation)];
        ends.output.wanted = *joint_wanted(&l, block);
    }
    lowering_finish(&l);
    return ends;
}
