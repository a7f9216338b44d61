/* lower.c - runs the steps of lowering in order, and manages their shared state; for a whole
 * program, or for a part of one: a block, a joint or a crossing on its own, exactly as in a whole
 * program.
 *
 * What a part finds (the output of the block before, the gradient from the block after) is a buffer
 * that no instruction makes. Every byte and every instruction of a program belongs to exactly one
 * part: a block's input counts with the joint that brings it, its output with the joint that takes
 * it. */
#include "common/program/lower.h"

#include "common/base/memory.h"
#include "common/program/lowering.h"

#include <assert.h>
#include <stdlib.h>

#define LEAVES_MAX 4

static void lowering_init(struct lowering *l, const struct graph *graph, const struct plan *plan,
                          int rank, struct lower_cache *cache, struct error *err)
{
    assert(rank >= 0 && rank < plan_ranks(plan));
    struct program *program = lower_cache_program(cache);
    *l = (struct lowering){
        .graph = graph, .plan = plan, .program = program, .cache = cache, .err = err};
    l->stage = plan_rank_stage(plan, rank, &l->inside);
    l->mesh = stage_mesh(l, l->stage);
    l->homes = xcalloc(graph->tensor_count, sizeof *l->homes);
    for (size_t t = 0; t < graph->tensor_count; t++)
        l->homes[t].tensor = -1;
    /* Not cleared: they are large, written before they are read, and parts are lowered by the
     * thousand. */
    l->fetched = xrealloc(NULL, graph->node_count * sizeof *l->fetched);
    l->statistics = xrealloc(NULL, graph->node_count * sizeof *l->statistics);

    program->graph = graph;
    program->rank = rank;
    program->ranks = plan_ranks(plan);
    program->stage = l->stage;
    program->stage_first = rank - l->inside;
    program->stage_ranks = mesh_count(l->mesh);
    program->samples = plan->micro_batch_samples;
    program->slots = 1;
}

static void lowering_finish(struct lowering *l)
{
    program_destroy(l->program);
    free(l->signatures);
    free(l->homes);
    free(l->fetched);
    free(l->statistics);
    free(l->versions.items);
    free(l->arriving.items);
    free(l->shares);
    free(l->uses);
    free(l->buckets);
    free(l->storage);
    free(l->owner);
    free(l->room_bytes);
}

static void lowering_signatures(struct lowering *l)
{
    l->signatures = xrealloc(NULL, l->graph->node_count * sizeof *l->signatures);
    for (size_t n = 0; n < l->graph->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        const struct plan_block *block = &l->plan->blocks[node->block];
        if (!part_concerns(l, node->block))
            continue;
        int axes = stage_mesh(l, block->stage)->axes;
        l->signatures[n] = lower_cache_signature(l->cache, node, block->roles, axes);
    }
}

/* A buffer that the part finds, made outside of it. */
static struct piece segment_find_given(struct lowering *l, int tensor,
                                       const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = own_slice(l, &shape, placement);
    return emit_new(l, REGION_TRANSIENT, tensor, &box);
}

/* Sets up a block's output as that block leaves it. Returns the buffer. */
static int segment_find_output(struct lowering *l, int block)
{
    int tensor = l->graph->blocks[block].output;
    int producer = l->graph->tensors[tensor].producer;
    int last = operation_output(l->graph->nodes[producer].operation);
    const struct placement *made = &l->signatures[producer].operand[last];
    struct piece piece = segment_find_given(l, tensor, made);
    l->homes[tensor] = (struct held){tensor, *made, piece};
    return piece.buffer;
}

/* The distinct placements in which a block produces its input's gradient, in order of backward.
 * Returns how many, at most `most`. */
static int segment_leaves(const struct lowering *l, int index, struct placement *leaves, int most)
{
    const struct block *block = &l->graph->blocks[index];
    int count = 0;
    for (int n = block->node_first + block->node_count - 1; n >= block->node_first; n--) {
        const struct node *node = &l->graph->nodes[n];
        for (int i = 0; i < node->operation->input_count; i++) {
            const struct placement *leaving = &l->signatures[n].gradient[i];
            int known = 0;
            if (node->operands[i] != joint_tensor(l, index) || !node_differentiates(node, i))
                continue;
            while (known < count && !placement_equal(&leaves[known], leaving))
                known++;
            assert(known < most && "a block that reads its input in many ways");
            leaves[known] = *leaving;
            count = known == count ? count + 1 : count;
        }
    }
    return count;
}

/* Sets up the gradient of a block's input as that block leaves it: one contribution for each
 * placement. */
static void segment_find_gradients(struct lowering *l, int block)
{
    struct placement leaves[LEAVES_MAX] = {0};
    int count = segment_leaves(l, block, leaves, LEAVES_MAX), tensor = joint_tensor(l, block);
    for (int i = 0; i < count; i++) {
        struct piece piece = segment_find_given(l, tensor, &leaves[i]);
        backward_arrive(l, tensor, &leaves[i], &piece);
    }
}

/* Lowers a block. The bytes of its input, and of its output unless saved, count with its
 * neighbours, so they are set to 0. */
static int segment_block(struct lowering *l, int block)
{
    int input = joint_tensor(l, block), output = l->graph->blocks[block].output, rc;
    emit_section(l, SECTION_FORWARD);
    if (input >= 0) {
        struct placement entry = joint_entry(l, block);
        struct piece piece = segment_find_given(l, input, &entry);
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
        struct piece piece = segment_find_given(l, output, wanted);
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

static int segment_joint(struct lowering *l, int block)
{
    emit_section(l, SECTION_FORWARD);
    l->found = segment_find_output(l, block);
    int rc = joint_forward(l, block + 1);
    if (rc < 0)
        return rc;
    emit_section(l, SECTION_BACKWARD);
    segment_find_gradients(l, block + 1);
    rc = joint_backward(l, block);
    emit_room(l, -1);
    backward_pass(l, l->graph->blocks[block].output);
    return rc;
}

static int segment_crossing(struct lowering *l, int stage)
{
    int block = l->plan->stages[stage + 1].block_first;
    emit_section(l, SECTION_FORWARD);
    if (l->stage == stage)
        l->found = segment_find_output(l, block - 1);
    int rc = joint_leave(l, stage);
    if (rc < 0)
        return rc;
    emit_section(l, SECTION_BACKWARD);
    if (l->stage == stage + 1)
        segment_find_gradients(l, block);
    rc = joint_return(l, stage);
    emit_room(l, -1);
    backward_pass(l, l->graph->blocks[block - 1].output);
    return rc;
}

static int segment_events(struct lowering *l)
{
    switch (l->part->kind) {
    case PART_BLOCK:
        return segment_block(l, l->part->index);
    case PART_JOINT:
        return segment_joint(l, l->part->index);
    case PART_CROSSING:
        return segment_crossing(l, l->part->index);
    case PART_BASE:
        break;
    }
    emit_section(l, SECTION_FORWARD);
    emit_section(l, SECTION_BACKWARD);
    return 0;
}

static void lowering_make_events(struct lowering *l)
{
    struct program *p = l->program;
    p->micro_batches = l->plan->micro_batches;
    p->event_count = 2 * p->micro_batches;
    p->events = xcalloc((size_t)p->event_count, sizeof *p->events);
    p->slots = schedule_events(l->plan->schedule, l->stage, l->plan->stage_count, p->micro_batches,
                               p->events);
}

static int lowering_events(struct lowering *l)
{
    if (l->part)
        return segment_events(l);
    int rc = joints_forward(l);
    return rc < 0 ? rc : joints_backward(l);
}

static int lowering_build(struct lowering *l)
{
    lowering_signatures(l);
    int rc = weights_find(l);
    if (rc == 0) {
        weights_buffers(l);
        rc = weights_travel(l);
    }
    if (rc == 0) {
        gradients_clear(l);
        rc = lowering_events(l);
    }
    if (rc == 0)
        rc = gradients_reduce(l);
    if (rc < 0)
        return rc;
    weights_update(l);
    arena_layout(l);
    if (!l->part) /* parts are priced, never executed */
        waits_find(l->program);
    return 0;
}

int lower(const struct graph *graph, const struct plan *plan, int rank, struct program **out,
          struct error *err)
{
    struct lower_cache *cache = lower_cache_create();
    int rc = lower_with(cache, graph, plan, rank, out, err);
    lower_cache_destroy(cache);
    return rc;
}

int lower_with(struct lower_cache *cache, const struct graph *graph, const struct plan *plan,
               int rank, struct program **out, struct error *err)
{
    struct lowering l;
    int rc = plan_check(plan, graph, err);
    if (rc < 0)
        return rc;
    lowering_init(&l, graph, plan, rank, cache, err);
    lowering_make_events(&l);
    rc = lowering_build(&l);
    if (rc == 0) {
        *out = l.program;
        l.program = NULL;
    }
    lowering_finish(&l);
    return rc;
}

int lower_storage(const struct graph *graph, const struct plan *plan, struct storage *out,
                  struct error *err)
{
    struct lowering l;
    int rc = plan_check(plan, graph, err);
    if (rc < 0)
        return rc;
    struct lower_cache *cache = lower_cache_create();
    lowering_init(&l, graph, plan, 0, cache, err);
    lowering_signatures(&l);
    rc = weights_find(&l);
    for (size_t t = 0; t < graph->tensor_count && rc == 0; t++)
        out[t] = l.owner[t] < 0 ? (struct storage){.stage = -1}
                                : (struct storage){.stage = weights_owner(&l, (int)t)->stage,
                                                   .shape = tensor_shape(&l, (int)t),
                                                   .placement = l.storage[t]};
    lowering_finish(&l);
    lower_cache_destroy(cache);
    return rc;
}

static void segment_sizes(const struct lowering *l, struct lowered_part *out)
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
               const struct part *part, struct lower_cache *cache, struct lowered_part *out,
               struct error *err)
{
    struct lowering l;
    *out = (struct lowered_part){0};
    lowering_init(&l, graph, plan, rank, cache, err);
    l.part = part;
    l.found = l.forward_room = -1;
    int rc = lowering_build(&l);
    if (rc == 0) {
        segment_sizes(&l, out);
        out->program = l.program;
        l.program = NULL;
    }
    lowering_finish(&l);
    return rc;
}

void lower_part_done(struct lower_cache *cache, struct lowered_part *part)
{
    lower_cache_return(cache, part->program);
    part->program = NULL;
}

struct part_ends lower_ends(const struct graph *graph, const struct plan *plan, int block)
{
    struct part part = {PART_BLOCK, block, -1};
    struct lowering l;
    int last = (int)graph->block_count - 1;
    struct lower_cache *cache = lower_cache_create();
    lowering_init(&l, graph, plan, plan_stage_rank(plan, plan->blocks[block].stage), cache, NULL);
    l.part = &part;
    struct part_ends ends = {0};
    lowering_signatures(&l);
    if (block > 0) {
        ends.input.entry = joint_entry(&l, block);
        segment_leaves(&l, block, ends.input.leaves, LEAVES_MAX);
    }
    if (block < last) {
        int producer = graph->tensors[graph->blocks[block].output].producer;
        ends.output.made =
            l.signatures[producer].operand[operation_output(graph->nodes[producer].operation)];
        ends.output.wanted = *joint_wanted(&l, block);
    }
    lowering_finish(&l);
    lower_cache_destroy(cache);
    return ends;
}
