/* move.c - brings a tensor from one placement to another: inside a stage by the collectives and
 * copies of a path, and from stage to stage by messages.
 *
 * A collective works on contiguous chunks, one per member, in the members' order. Where the chunks
 * do not lie like this in memory, they are packed before or unpacked afterwards.
 *
 * Between stages every receiving rank gets the intersections of its slice with those of the sending
 * ranks, one message each. Replicas on the sending stage take turns, so that the load is spread. */
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
static void chunks_slice(const struct lowering *l, const struct shape *shape,
                         const struct placement *placement, unsigned axes, struct chunks *chunks)
{
    chunks->boxes = xrealloc(NULL, (size_t)chunks->count * sizeof *chunks->boxes);
    placement_slices(l->mesh, shape, placement, l->inside, axes, chunks->boxes);
}

/* Reduces each chunk to its part inside the outer box. */
static void chunks_clip(struct chunks *chunks, const struct box *outer)
{
    for (int i = 0; i < chunks->count; i++)
        chunks->boxes[i] = overlap_or_empty(outer, &chunks->boxes[i]);
}

static int64_t chunks_total(const struct chunks *chunks)
{
    int64_t count = 0;
    for (int i = 0; i < chunks->count; i++)
        count += box_count(&chunks->boxes[i]);
    return count;
}

static bool chunks_are_equal(const struct chunks *chunks)
{
    for (int i = 1; i < chunks->count; i++)
        if (box_count(&chunks->boxes[i]) != box_count(&chunks->boxes[0]))
            return false;
    return true;
}

/* Do the chunks follow each other in memory and fill the outer box? */
static bool chunks_in_order(const struct box *outer, const struct chunks *chunks)
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
static struct piece move_flat(struct lowering *l, int tensor, int64_t count)
{
    struct box box = {.dims = 1, .high = {count}};
    return emit_new(l, REGION_TRANSIENT, tensor, &box);
}

/* Copies chunk after chunk from the outer piece to the packed one, or back. */
static void chunks_copy(struct lowering *l, const struct piece *outer, const struct piece *packed,
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

static void chunks_count(struct lowering *l, const struct chunks *chunks)
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
static struct piece move_exchange(struct lowering *l, enum collective kind, int group, int tensor,
                                  const struct piece *piece, const struct box *target,
                                  const struct chunks *sends, const struct chunks *receives)
{
    struct piece source = *piece, result = emit_new(l, REGION_TRANSIENT, tensor, target);
    struct piece destination = result;
    if (sends && !chunks_in_order(&piece->box, sends)) {
        source = move_flat(l, tensor, chunks_total(sends));
        chunks_copy(l, piece, &source, sends, true);
    }
    bool unpack = receives && !chunks_in_order(target, receives);
    if (unpack)
        destination = move_flat(l, tensor, chunks_total(receives));

    int counts = (int)l->program->counts_count;
    if (sends)
        chunks_count(l, sends);
    if (receives)
        chunks_count(l, receives);
    emit_collective(l, kind, group, counts, &source, &destination);
    if (unpack)
        chunks_copy(l, &result, &destination, receives, false);
    return result;
}

/* The part of a piece that the rank keeps: within the piece where it is in one stretch there. */
static struct piece move_keep(struct lowering *l, int tensor, const struct box *target,
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
static struct piece move_exchange_chunks(struct lowering *l, const struct shape *shape, int tensor,
                                         const struct placement *from, const struct step *step,
                                         const struct box *target, const struct piece *piece)
{
    int members = mesh_span(l->mesh, step->axes), group = emit_group(l, step->axes);
    struct chunks sends = {NULL, members}, receives = {NULL, members};
    if (step->kind != STEP_ALL_GATHER)
        chunks_slice(l, shape, &step->to, step->axes, &sends);
    if (step->kind != STEP_REDUCE_SCATTER)
        chunks_slice(l, shape, from, step->axes, &receives);
    struct piece result;
    if (step->kind == STEP_REDUCE_SCATTER) { /* chunks are parts of the source */
        result =
            move_exchange(l, COLLECTIVE_REDUCE_SCATTER, group, tensor, piece, target, &sends, NULL);
    } else if (step->kind == STEP_ALL_GATHER) { /* chunks are parts of the target */
        result =
            move_exchange(l, COLLECTIVE_ALL_GATHER, group, tensor, piece, target, NULL, &receives);
    } else {
        chunks_clip(&sends, &piece->box);
        chunks_clip(&receives, target);
        if (!chunks_are_equal(&sends) ||
            !chunks_are_equal(&receives)) /* then members differ from each other */
            l->program->uneven_axes |= step->axes;
        result = move_exchange(l, COLLECTIVE_ALL_TO_ALL, group, tensor, piece, target, &sends,
                               &receives);
    }
    free(sends.boxes);
    free(receives.boxes);
    return result;
}

static struct piece move_step(struct lowering *l, const struct shape *shape, int tensor,
                              const struct placement *from, const struct step *step,
                              const struct piece *piece)
{
    struct box target = own_slice(l, shape, &step->to);
    if (step->kind == STEP_SLICE)
        return move_keep(l, tensor, &target, piece);
    if (mesh_span(l->mesh, step->axes) == 1) /* axes of size 1: nothing moves */
        return *piece;
    if (step->kind == STEP_ALL_REDUCE) {
        emit_all_reduce(l, emit_group(l, step->axes), REDUCTION_SUM, piece);
        return *piece;
    }
    return move_exchange_chunks(l, shape, tensor, from, step, &target, piece);
}

int move_route(struct lowering *l, int tensor, const struct placement *from,
               const struct placement *to, const struct step **steps)
{
    struct shape shape = tensor_shape(l, tensor);
    return lower_cache_path(l->cache, l->mesh, &shape, from, to, steps, l->err);
}

int move_within(struct lowering *l, const struct shape *shape, int tensor,
                const struct placement *from, const struct placement *to, struct piece *piece)
{
    const struct step *steps;
    int count = move_route(l, tensor, from, to, &steps);
    for (int i = 0; i < count; i++)
        *piece = move_step(l, shape, tensor, i ? &steps[i - 1].to : from, &steps[i], piece);
    return count < 0 ? count : 0;
}

/* The rank that sends the box of `holder` to this receiver: one of its replicas, chosen in turn by
 * the receiver's number. */
static int move_sender(const struct lowering *l, int stage, const struct placement *placement,
                       int holder, int receiver)
{
    const struct mesh *mesh = stage_mesh(l, stage);
    unsigned replicas = ~placement_split_axes(placement) & ((1u << mesh->axes) - 1);
    int count = mesh_span(mesh, replicas);
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    mesh_group(mesh, holder, replicas, ranks);
    int sender = ranks[receiver % count];
    free(ranks);
    return sender;
}

static void move_send(struct lowering *l, int tensor, uint32_t tag, int peer,
                      const struct piece *piece, const struct box *part)
{
    struct piece message = emit_new(l, REGION_COMMUNICATION, tensor, part);
    struct instruction *wait = emit(l, INSTRUCTION_WAIT);
    wait->message.peer = peer;
    wait->message.tag = tag;
    emit_piece(l, 0, &message);
    emit_copy(l, piece, &message, part);
    struct instruction *send = emit(l, INSTRUCTION_SEND);
    send->message.peer = peer;
    send->message.tag = tag;
    emit_piece(l, 0, &message);
}

static void move_receive(struct lowering *l, int tensor, uint32_t tag, int peer,
                         const struct piece *piece, const struct box *part)
{
    int64_t offset;
    struct piece message = *piece;
    enum queue queue = l->queue;
    /* On the communication queue it may arrive before its destination is free, so it gets a buffer
     * of its own. */
    bool ahead = queue == QUEUE_COMPUTE && l->plan->overlap;
    bool direct = !ahead && box_contiguous(&piece->box, part, &offset);
    if (direct)
        message.offset += offset;
    else
        message = emit_new(l, REGION_COMMUNICATION, tensor, part);
    message.box = *part;
    emit_beside(l);
    struct instruction *receive = emit(l, INSTRUCTION_RECEIVE);
    receive->message.peer = peer;
    receive->message.tag = tag;
    emit_piece(l, 0, &message);
    l->queue = queue;
    if (!direct)
        emit_copy(l, &message, piece, part);
}

/* Unique per tensor or weight use, and purpose. Use 0 is the first of all, so it is its weight's
 * owner and never travels; 0 can therefore stand for "an activation". */
static uint32_t move_tag(const struct lowering *l, int tensor, enum purpose purpose, int use)
{
    uint32_t name = use ? (uint32_t)l->graph->tensor_count + (uint32_t)use : (uint32_t)tensor;
    return name * PURPOSES + (uint32_t)purpose;
}

/* One rank for every distinct piece of a placement (the first of its replicas), with the piece. */
struct holders {
    int *ranks;
    struct box *boxes;
    int count;
};

static struct holders find_holders(const struct mesh *mesh, const struct shape *shape,
                                   const struct placement *placement)
{
    unsigned split = placement_split_axes(placement);
    int count = mesh_span(mesh, split);
    struct holders holders = {xcalloc((size_t)count, sizeof(int)),
                              xcalloc((size_t)count, sizeof(struct box)), count};
    mesh_group(mesh, 0, split, holders.ranks);
    for (int i = 0; i < count; i++)
        holders.boxes[i] = placement_slice(mesh, shape, placement, holders.ranks[i]);
    return holders;
}

void move_across(struct lowering *l, const struct shape *shape, int tensor, enum purpose purpose,
                 int use, int from_stage, const struct placement *from, int to_stage,
                 const struct placement *to, struct piece *piece)
{
    const struct mesh *senders = stage_mesh(l, from_stage), *receivers = stage_mesh(l, to_stage);
    int from_rank = plan_stage_rank(l->plan, from_stage),
        to_rank = plan_stage_rank(l->plan, to_stage);
    uint32_t tag = move_tag(l, tensor, purpose, use);
    struct holders holders = find_holders(senders, shape, from);
    struct piece made = {0};
    emit_apart(l); /* some ranks of a stage send, others not */
    if (l->stage == to_stage) {
        struct box box = own_slice(l, shape, to);
        made = emit_new(l, REGION_TRANSIENT, tensor, &box);
    }
    for (int receiver = 0; receiver < mesh_count(receivers); receiver++) {
        if (l->stage == to_stage && receiver != l->inside)
            continue;
        struct box wanted = placement_slice(receivers, shape, to, receiver), part;
        for (int i = 0; i < holders.count; i++) {
            if (!box_overlap(&wanted, &holders.boxes[i], &part) || box_count(&part) == 0)
                continue;
            int sender = move_sender(l, from_stage, from, holders.ranks[i], receiver);
            if (l->stage == from_stage && sender == l->inside)
                move_send(l, tensor, tag, to_rank + receiver, piece, &part);
            if (l->stage == to_stage)
                move_receive(l, tensor, tag, from_rank + sender, &made, &part);
        }
    }
    free(holders.ranks);
    free(holders.boxes);
    if (l->stage == to_stage)
        *piece = made;
}
