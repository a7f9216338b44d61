/* exchange.c - instructions that need other ranks. Collectives and receives block; a send returns
 * at once, and its WAIT instruction comes where its buffer is needed again. */
#include "worker/interpreter/internal.h"

/* The buffers that a reduce-scatter or all-gather moves, in the order that all members use. */
static void collect_parts(const struct interpreter *in, const struct instruction *instruction,
                          int slot, struct collective_part *parts)
{
    const struct group *group = &in->program->groups[instruction->collective.group];
    const size_t *counts = &in->counts[instruction->collective.counts_first];
    for (int i = 0; i < collective_parts(instruction); i++)
        parts[i] = (struct collective_part){
            .source = interpreter_view(in, instruction, 2 * i, slot).data,
            .destination = interpreter_view(in, instruction, 2 * i + 1, slot).data,
            .counts = counts + (size_t)i * (size_t)group->count,
        };
}

int interpreter_meet(struct interpreter *in, const struct instruction *instruction, int slot,
                     struct error *err)
{
    const struct collectives *c = in->config.collectives;
    struct fabric_group *group = in->groups[instruction->collective.group];
    const size_t *counts = &in->counts[instruction->collective.counts_first];
    struct view source = interpreter_view(in, instruction, 0, slot);
    struct collective_part parts[COLLECTIVE_PARTS_MAX] = {0};
    if (instruction->collective.kind != COLLECTIVE_ALL_REDUCE)
        collect_parts(in, instruction, slot, parts);
    switch (instruction->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        return c->all_reduce(group, source.element, source.data, view_elements(&source),
                             instruction->collective.reduction, err);
    case COLLECTIVE_REDUCE_SCATTER:
        return c->reduce_scatter(group, source.element, parts, collective_parts(instruction), err);
    case COLLECTIVE_ALL_GATHER:
        return c->all_gather(group, source.element, parts, collective_parts(instruction), err);
    case COLLECTIVE_ALL_TO_ALL:
        return c->all_to_all(group, source.element, source.data, counts, parts[0].destination,
                             counts + in->program->groups[instruction->collective.group].count,
                             err);
    }
    return 0;
}

static int wait_for(struct interpreter *in, struct sending *sending, struct error *err)
{
    struct fabric_request *request = sending->request;
    sending->request = NULL;
    return request ? in->config.collectives->wait(in->config.fabric, request, err) : 0;
}

int interpreter_message(struct interpreter *in, const struct instruction *instruction, int slot,
                        struct error *err)
{
    const struct collectives *c = in->config.collectives;
    struct view view = interpreter_view(in, instruction, 0, slot);
    if (instruction->kind == INSTRUCTION_RECEIVE)
        return c->receive(in->config.fabric, instruction->message.peer, instruction->message.tag,
                          view.element, view.data, view_elements(&view), err);
    struct sending *sending = interpreter_sending(in, instruction);
    if (instruction->kind == INSTRUCTION_WAIT)
        return wait_for(in, sending, err);
    return c->send(in->config.fabric, sending->peer, sending->tag, view.element, view.data,
                   view_elements(&view), &sending->request, err);
}

int interpreter_check(const struct interpreter *in, struct error *err)
{
    const struct collectives *c = in->config.collectives;
    return in->config.fabric && c->check ? c->check(in->config.fabric, err) : 0;
}

int interpreter_quiesce(struct interpreter *in, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < in->sending_count && rc == 0; i++)
        rc = wait_for(in, &in->sendings[i], err);
    return rc;
}
