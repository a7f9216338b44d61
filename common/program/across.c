/* across.c - sends a tensor from one stage to another.
 *
 * Every receiving rank gets the intersections of its slice with those of the sending ranks, one
 * message each. Replicas on the sending stage take turns, so that the load is spread. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* The rank that sends the box of `holder` to this receiver: one of its replicas, chosen in turn by
 * the receiver's number. */
static int sender_of(const struct lowering *l, int stage, const struct placement *placement,
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

static void send_part(struct lowering *l, int tensor, uint32_t tag, int peer,
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

static void receive_part(struct lowering *l, int tensor, uint32_t tag, int peer,
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
static uint32_t tag_of(const struct lowering *l, int tensor, enum purpose purpose, int use)
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
    uint32_t tag = tag_of(l, tensor, purpose, use);
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
            int sender = sender_of(l, from_stage, from, holders.ranks[i], receiver);
            if (l->stage == from_stage && sender == l->inside)
                send_part(l, tensor, tag, to_rank + receiver, piece, &part);
            if (l->stage == to_stage)
                receive_part(l, tensor, tag, from_rank + sender, &made, &part);
        }
    }
    free(holders.ranks);
    free(holders.boxes);
    if (l->stage == to_stage)
        *piece = made;
}
