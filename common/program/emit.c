/* emit.c - appending buffers, pieces, groups and instructions to a program. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* f32 for everything that is kept or summed up: state (masters, moments), gradients in the reduce
 * section, and buffers without a tensor (statistics, scratch). Activations and weights otherwise
 * have the element size of the graph. */
static int element_bytes(const struct lowering *l, enum region region, int tensor)
{
    if (region == REGION_STATE || l->section == SECTION_REDUCE || tensor < 0)
        return ELEMENT_BYTES;
    enum tensor_kind kind = l->graph->tensors[tensor].kind;
    return kind == TENSOR_ACTIVATION || kind == TENSOR_WEIGHT ? l->graph->element_bytes
                                                              : ELEMENT_BYTES;
}

int emit_buffer(struct lowering *l, enum region region, int64_t count, int tensor)
{
    struct program *p = l->program;
    bool beside = region == REGION_TRANSIENT && l->queue == QUEUE_COMMUNICATION;
    int element = element_bytes(l, region, tensor);
    p->buffers = grow(p->buffers, p->buffer_count, &p->buffer_capacity, sizeof *p->buffers);
    l->shares = grow(l->shares, p->buffer_count, &l->shares_capacity, sizeof *l->shares);
    p->buffers[p->buffer_count] = (struct buffer){
        .region = beside ? REGION_COMMUNICATION : region,
        .bytes = (uint64_t)count * (uint64_t)element,
        .element_bytes = element,
        .tensor = tensor,
        .block = l->block,
        .first = (int)p->instruction_count,
        .last = (int)p->instruction_count,
        .room_first = l->room,
        .room_last = l->room,
        .beside = beside,
    };
    l->shares[p->buffer_count] = 0;
    return (int)p->buffer_count++;
}

void emit_apart(struct lowering *l)
{
    l->joins = false;
}

struct instruction *emit(struct lowering *l, enum instruction_kind kind)
{
    struct program *p = l->program;
    emit_apart(l);
    p->instructions = grow(p->instructions, p->instruction_count, &p->instruction_capacity,
                           sizeof *p->instructions);
    struct instruction *instruction = &p->instructions[p->instruction_count++];
    *instruction = (struct instruction){
        .kind = kind,
        .queue = l->queue,
        .block = l->block,
        .piece_first = (int)p->piece_count,
    };
    p->sections[l->section].count++;
    return instruction;
}

/* Notes that the last instruction touches the buffer. A transient buffer that forward made and
 * backward touches becomes a saved one. */
static void touch(struct lowering *l, int index)
{
    struct program *p = l->program;
    struct buffer *buffer = &p->buffers[index];
    buffer->last = (int)p->instruction_count - 1;
    buffer->room_last = l->room;
    if (l->section == SECTION_BACKWARD && buffer->region == REGION_TRANSIENT &&
        buffer->first < p->sections[SECTION_BACKWARD].first)
        buffer->region = REGION_SAVED;
}

void emit_use(struct lowering *l, int buffer)
{
    if (buffer >= 0)
        touch(l, buffer);
}

int emit_workspace(struct lowering *l, const struct operation *operation, const struct box *boxes,
                   enum direction direction)
{
    bool computes = box_count(&boxes[0]) > 0; /* false for a rank whose share of samples is empty */
    uint64_t bytes = operation->workspace && computes ? operation->workspace(boxes, direction) : 0;
    return bytes ? emit_buffer(l, REGION_TRANSIENT, (int64_t)(bytes / ELEMENT_BYTES), -1) : -1;
}

void emit_piece(struct lowering *l, int operand, const struct piece *piece)
{
    struct program *p = l->program;
    p->pieces = grow(p->pieces, p->piece_count, &p->piece_capacity, sizeof *p->pieces);
    p->pieces[p->piece_count] = *piece;
    p->pieces[p->piece_count++].operand = (uint8_t)operand;
    p->instructions[p->instruction_count - 1].piece_count++;
    emit_use(l, piece->buffer);
}

struct piece emit_new(struct lowering *l, enum region region, int tensor, const struct box *box)
{
    return (struct piece){.buffer = emit_buffer(l, region, box_count(box), tensor), .box = *box};
}

void emit_copy(struct lowering *l, const struct piece *from, const struct piece *to,
               const struct box *part)
{
    emit_apart(l); /* also on ranks that have nothing to copy */
    if (box_count(part) == 0)
        return;
    emit(l, INSTRUCTION_COPY)->part = *part;
    emit_piece(l, 0, from);
    emit_piece(l, 1, to);
}

void emit_add(struct lowering *l, const struct piece *from, const struct piece *to)
{
    emit(l, INSTRUCTION_ADD);
    emit_piece(l, 0, from);
    emit_piece(l, 1, to);
}

void emit_clear(struct lowering *l, int buffer, int64_t count)
{
    struct piece piece = {.buffer = buffer, .box = {.dims = 1, .high = {count}}};
    emit(l, INSTRUCTION_CLEAR);
    emit_piece(l, 0, &piece);
}

void emit_beside(struct lowering *l)
{
    l->queue = l->plan->overlap ? QUEUE_COMMUNICATION : QUEUE_COMPUTE;
}

void emit_at_once(struct lowering *l)
{
    l->queue = QUEUE_COMPUTE;
}

void emit_room(struct lowering *l, int block)
{
    l->block = block;
    l->room++;
}

void emit_section(struct lowering *l, enum section section)
{
    emit_apart(l);
    l->section = (int)section;
    l->block = -1;
    l->room++;
    l->program->sections[section].first = (int)l->program->instruction_count;
}

/* Takes ownership of `ranks`. Reuses a group that the program already has. */
static int add_group(struct lowering *l, int *ranks, int count, int own)
{
    struct program *p = l->program;
    for (size_t i = 0; i < p->group_count; i++) {
        if (p->groups[i].count == count && p->groups[i].queue == l->queue &&
            memcmp(p->groups[i].ranks, ranks, (size_t)count * sizeof *ranks) == 0) {
            free(ranks);
            return (int)i;
        }
    }
    p->groups = grow(p->groups, p->group_count, &p->group_capacity, sizeof *p->groups);
    p->groups[p->group_count] =
        (struct group){.ranks = ranks, .count = count, .own = own, .queue = l->queue};
    return (int)p->group_count++;
}

int emit_group(struct lowering *l, unsigned axes)
{
    int count = mesh_span(l->mesh, axes), base = plan_stage_rank(l->plan, l->stage);
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    int own = mesh_group(l->mesh, l->inside, axes, ranks);
    for (int i = 0; i < count; i++)
        ranks[i] += base;
    return add_group(l, ranks, count, own);
}

int emit_group_all(struct lowering *l)
{
    int *ranks = xcalloc((size_t)l->program->ranks, sizeof *ranks);
    for (int i = 0; i < l->program->ranks; i++)
        ranks[i] = i;
    return add_group(l, ranks, l->program->ranks, l->program->rank);
}

/* Can the collective become a further part of the last instruction? All members of the group have
 * to come to the same answer, so it depends only on what is the same for all of them. */
static bool joins(const struct lowering *l, enum collective kind, int group,
                  const struct piece *source)
{
    const struct program *p = l->program;
    if (!l->joins)
        return false;
    const struct instruction *last = &p->instructions[p->instruction_count - 1];
    if (last->collective.kind != kind || last->collective.group != group ||
        l->joins_room != l->room || collective_parts(last) == COLLECTIVE_PARTS_MAX)
        return false;
    int first = program_pieces(p, last)->buffer;
    if (p->buffers[first].element_bytes != p->buffers[source->buffer].element_bytes)
        return false;
    for (int part = 0; part < collective_parts(last); part++)
        if (program_pieces(p, last)[2 * part + 1].buffer == source->buffer)
            return false;
    return true;
}

void emit_collective(struct lowering *l, enum collective kind, int group, int counts,
                     const struct piece *source, const struct piece *destination)
{
    if (!joins(l, kind, group, source)) {
        struct instruction *instruction = emit(l, INSTRUCTION_COLLECTIVE);
        instruction->collective.kind = kind;
        instruction->collective.group = group;
        instruction->collective.counts_first = counts;
        l->joins = kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER;
        l->joins_room = l->room;
    }
    struct buffer *made = &l->program->buffers[destination->buffer];
    if (made->first ==
        (int)l->program->instruction_count) /* made by the collective that this part joins */
        made->first--;
    emit_piece(l, 0, source);
    emit_piece(l, 1, destination);
}

void emit_all_reduce(struct lowering *l, int group, enum reduction reduction,
                     const struct piece *piece)
{
    if (l->program->groups[group].count == 1)
        return;
    struct instruction *instruction = emit(l, INSTRUCTION_COLLECTIVE);
    instruction->collective.kind = COLLECTIVE_ALL_REDUCE;
    instruction->collective.reduction = reduction;
    instruction->collective.group = group;
    emit_piece(l, 0, piece);
}

const struct mesh *stage_mesh(const struct lowering *l, int stage)
{
    return &l->plan->stages[stage].mesh;
}

struct shape tensor_shape(const struct lowering *l, int tensor)
{
    struct shape shape = shape_of(&l->graph->tensors[tensor], l->program->samples);
    shape.uneven = l->graph->tensors[tensor].kind == TENSOR_WEIGHT;
    return shape;
}

struct box own_slice(const struct lowering *l, const struct shape *shape,
                     const struct placement *placement)
{
    if (!l->part)
        l->program->uneven_axes |= placement_uneven_axes(l->mesh, shape, placement);
    return placement_slice(l->mesh, shape, placement, l->inside);
}

bool at_first_of(const struct lowering *l, unsigned axes)
{
    for (int axis = 0; axis < l->mesh->axes; axis++)
        if (axes >> axis & 1 && mesh_coordinate(l->mesh, l->inside, axis) != 0)
            return false;
    return true;
}

bool does_for_all(const struct lowering *l, unsigned axes)
{
    l->program->first_axes |= axes;
    return at_first_of(l, axes);
}

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
