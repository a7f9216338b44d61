/* move.c - redistributes a tensor inside a stage: emits the collectives and copies of a path.
 *
 * A collective works on contiguous chunks, one per member, in the members' order. Where the chunks
 * do not lie like this in memory, they are packed before or unpacked afterwards. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The chunks of one collective: a box per member, inside one outer piece. */
struct chunks {
    struct box *boxes;
    int count;
};

static struct box overlap_or_empty(const struct box *a, const struct box *b)
{
    struct box both;
    return box_overlap(a, b, &both) ? both : (struct box){.dims = a->dims};
}

/* Sets the boxes to what each member of the group along these axes holds in the placement. The
 * caller frees them. */
static void slice_chunks(const struct lowering *l, const struct shape *shape,
                         const struct placement *placement, unsigned axes, struct chunks *chunks)
{
    chunks->boxes = xrealloc(NULL, (size_t)chunks->count * sizeof *chunks->boxes);
    placement_slices(l->mesh, shape, placement, l->inside, axes, chunks->boxes);
}

/* Reduces each chunk to its part inside the outer box. */
static void clip(struct chunks *chunks, const struct box *outer)
{
    for (int i = 0; i < chunks->count; i++)
        chunks->boxes[i] = overlap_or_empty(outer, &chunks->boxes[i]);
}

static int64_t total(const struct chunks *chunks)
{
    int64_t count = 0;
    for (int i = 0; i < chunks->count; i++)
        count += box_count(&chunks->boxes[i]);
    return count;
}

static bool are_equal(const struct chunks *chunks)
{
    for (int i = 1; i < chunks->count; i++)
        if (box_count(&chunks->boxes[i]) != box_count(&chunks->boxes[0]))
            return false;
    return true;
}

/* Do the chunks follow each other in memory and fill the outer box? */
static bool in_order(const struct box *outer, const struct chunks *chunks)
{
    int64_t next = 0, offset;
    for (int i = 0; i < chunks->count; i++) {
        int64_t count = box_count(&chunks->boxes[i]);
        if (count == 0)
            continue;
        if (!box_contiguous(outer, &chunks->boxes[i], &offset) || offset != next)
            return false;
        next += count;
    }
    return next == box_count(outer);
}

/* A new one-dimensional buffer of `count` elements, for a collective to read or write. */
static struct piece flat(struct lowering *l, int tensor, int64_t count)
{
    struct box box = {.dims = 1, .high = {count}};
    return emit_new(l, REGION_TRANSIENT, tensor, &box);
}

/* Copies chunk after chunk from the outer piece to the packed one, or back. */
static void copy_chunks(struct lowering *l, const struct piece *outer, const struct piece *packed,
                        const struct chunks *chunks, bool pack)
{
    struct piece chunk = *packed;
    for (int i = 0; i < chunks->count; i++) {
        chunk.box = chunks->boxes[i];
        if (pack)
            emit_copy(l, outer, &chunk, &chunk.box);
        else
            emit_copy(l, &chunk, outer, &chunk.box);
        chunk.offset += box_count(&chunk.box);
    }
}

static void add_counts(struct lowering *l, const struct chunks *chunks)
{
    struct program *p = l->program;
    for (int i = 0; i < chunks->count; i++) {
        p->counts = grow(p->counts, p->counts_count, &p->counts_capacity, sizeof *p->counts);
        p->counts[p->counts_count++] = box_count(&chunks->boxes[i]);
    }
}

/* Emits one collective with its packing and unpacking. `sends` are the chunks of the source piece;
 * NULL for an all-gather, which sends the whole piece to everybody. `receives` are the chunks of
 * the result; NULL for a reduce-scatter. */
static struct piece exchange(struct lowering *l, enum collective kind, int group, int tensor,
                             const struct piece *piece, const struct box *target,
                             const struct chunks *sends, const struct chunks *receives)
{
    struct piece source = *piece, result = emit_new(l, REGION_TRANSIENT, tensor, target);
    struct piece destination = result;
    if (sends && !in_order(&piece->box, sends)) {
        source = flat(l, tensor, total(sends));
        copy_chunks(l, piece, &source, sends, true);
    }
    bool unpack = receives && !in_order(target, receives);
    if (unpack)
        destination = flat(l, tensor, total(receives));

    int counts = (int)l->program->counts_count;
    if (sends)
        add_counts(l, sends);
    if (receives)
        add_counts(l, receives);
    emit_collective(l, kind, group, counts, &source, &destination);
    if (unpack)
        copy_chunks(l, &result, &destination, receives, false);
    return result;
}

/* The part of a piece that the rank keeps: within the piece where it is in one stretch there. */
static struct piece keep_slice(struct lowering *l, int tensor, const struct box *target,
                               const struct piece *piece)
{
    struct piece part = *piece;
    int64_t offset = 0;
    part.box = *target;
    emit_apart(l); /* some ranks may have something to copy, others not */
    if (box_count(target) == 0 || box_contiguous(&piece->box, target, &offset)) {
        part.offset += box_count(target) ? offset : 0;
        return part;
    }
    part = emit_new(l, REGION_TRANSIENT, tensor, target);
    emit_copy(l, piece, &part, target);
    return part;
}

/* Exchange chunks of the piece for chunks of the target among the members of a group. */
static struct piece exchange_chunks(struct lowering *l, const struct shape *shape, int tensor,
                                    const struct placement *from, const struct step *step,
                                    const struct box *target, const struct piece *piece)
{
    int members = mesh_span(l->mesh, step->axes), group = emit_group(l, step->axes);
    struct chunks sends = {NULL, members}, receives = {NULL, members};
    if (step->kind != STEP_ALL_GATHER)
        slice_chunks(l, shape, &step->to, step->axes, &sends);
    if (step->kind != STEP_REDUCE_SCATTER)
        slice_chunks(l, shape, from, step->axes, &receives);
    struct piece result;
    if (step->kind == STEP_REDUCE_SCATTER) { /* chunks are parts of the source */
        result = exchange(l, COLLECTIVE_REDUCE_SCATTER, group, tensor, piece, target, &sends, NULL);
    } else if (step->kind == STEP_ALL_GATHER) { /* chunks are parts of the target */
        result = exchange(l, COLLECTIVE_ALL_GATHER, group, tensor, piece, target, NULL, &receives);
    } else {
        clip(&sends, &piece->box);
        clip(&receives, target);
        if (!are_equal(&sends) || !are_equal(&receives)) /* then members differ from each other */
            l->program->uneven_axes |= step->axes;
        result =
            exchange(l, COLLECTIVE_ALL_TO_ALL, group, tensor, piece, target, &sends, &receives);
    }
    free(sends.boxes);
    free(receives.boxes);
    return result;
}

static struct piece one_step(struct lowering *l, const struct shape *shape, int tensor,
                             const struct placement *from, const struct step *step,
                             const struct piece *piece)
{
    struct box target = own_slice(l, shape, &step->to);
    if (step->kind == STEP_SLICE)
        return keep_slice(l, tensor, &target, piece);
    if (mesh_span(l->mesh, step->axes) == 1) /* axes of size 1: nothing moves */
        return *piece;
    if (step->kind == STEP_ALL_REDUCE) {
        emit_all_reduce(l, emit_group(l, step->axes), REDUCTION_SUM, piece);
        return *piece;
    }
    return exchange_chunks(l, shape, tensor, from, step, &target, piece);
}

int move_route(struct lowering *l, int tensor, const struct placement *from,
               const struct placement *to, const struct step **steps)
{
    struct shape shape = tensor_shape(l, tensor);
    const char *dims = l->graph->tensors[tensor].dims;
    if (l->ways)
        return ways_find(l->ways, l->mesh, &shape, from, to, steps, l->err);
    for (size_t i = 0; i < l->route_count; i++) {
        const struct route *known = &l->routes[i];
        if (strcmp(known->dims, dims) == 0 && known->uneven == shape.uneven &&
            placement_equal(&known->from, from) && placement_equal(&known->to, to)) {
            *steps = known->steps;
            return known->count;
        }
    }
    l->routes = grow(l->routes, l->route_count, &l->route_capacity, sizeof *l->routes);
    struct route *route = &l->routes[l->route_count];
    *route = (struct route){.dims = dims, .uneven = shape.uneven, .from = *from, .to = *to};
    route->count = redistribute_path(l->mesh, &shape, from, to, route->steps, l->err);
    if (route->count >= 0)
        l->route_count++;
    *steps = route->steps;
    return route->count;
}

int move_within(struct lowering *l, const struct shape *shape, int tensor,
                const struct placement *from, const struct placement *to, struct piece *piece)
{
    const struct step *steps;
    int count = move_route(l, tensor, from, to, &steps);
    for (int i = 0; i < count; i++)
        *piece = one_step(l, shape, tensor, i ? &steps[i - 1].to : from, &steps[i], piece);
    return count < 0 ? count : 0;
}
