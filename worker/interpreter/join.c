/* join.c - creates the groups and the message channels of a rank's program. All are created before
 * the first step, when no rank waits for anything else. */
#include "worker/interpreter/internal.h"

#include "common/base/memory.h"

#include <stdlib.h>

static int by_members(const void *a, const void *b, void *context)
{
    const struct group *groups = context, *first = &groups[*(const int *)a],
                       *second = &groups[*(const int *)b];
    for (int i = 0; i < first->count && i < second->count; i++)
        if (first->ranks[i] != second->ranks[i])
            return first->ranks[i] < second->ranks[i] ? -1 : 1;
    if (first->count != second->count)
        return first->count - second->count;
    return (int)first->queue - (int)second->queue;
}

/* Whether the program has an all-to-all in the group. */
static bool exchanges_all(const struct program *program, int group)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind == INSTRUCTION_COLLECTIVE && instruction->collective.group == group &&
            instruction->collective.kind == COLLECTIVE_ALL_TO_ALL)
            return true;
    }
    return false;
}

static int form_group(struct interpreter *in, int index, struct error *err)
{
    const struct collectives *c = in->config.collectives;
    const struct group *group = &in->program->groups[index];
    if (group->count < 2)
        return 0;
    int rc = c->group(in->config.fabric, group->ranks, group->count, &in->groups[index], err);
    if (rc == 0 && c->acquaint && exchanges_all(in->program, index))
        rc = c->acquaint(in->groups[index], err);
    return rc;
}

/* Forming a group waits for all its members. All ranks form their groups in the same order, by
 * members and queue, so that no ranks wait for each other in a cycle. */
static int form_groups(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    int *order = xcalloc(p->group_count, sizeof *order), rc = 0;
    for (size_t i = 0; i < p->group_count; i++)
        order[i] = (int)i;
    qsort_r(order, p->group_count, sizeof *order, by_members, p->groups);
    in->groups = xcalloc(p->group_count, sizeof *in->groups);
    for (size_t i = 0; i < p->group_count && rc == 0; i++)
        rc = form_group(in, order[i], err);
    free(order);
    return rc;
}

static int by_ends(const void *a, const void *b)
{
    const struct message_ends *first = a, *second = b;
    if (first->from != second->from)
        return first->from - second->from;
    if (first->to != second->to)
        return first->to - second->to;
    return (first->tag > second->tag) - (first->tag < second->tag);
}

/* Opens each channel once, in the order of ends and tag, so that, as with groups, ranks cannot wait
 * in a cycle. */
static int open_channels(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    const struct collectives *c = in->config.collectives;
    if (!in->config.fabric || !c->channel)
        return 0;
    struct message_ends *ends = xcalloc(p->instruction_count, sizeof *ends);
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < p->instruction_count; i++) {
        const struct instruction *instruction = &p->instructions[i];
        int peer = instruction->message.peer;
        uint32_t tag = instruction->message.tag;
        if (instruction->kind == INSTRUCTION_SEND)
            ends[count++] = (struct message_ends){p->rank, peer, tag};
        else if (instruction->kind == INSTRUCTION_RECEIVE)
            ends[count++] = (struct message_ends){peer, p->rank, tag};
    }
    qsort(ends, count, sizeof *ends, by_ends);
    for (size_t i = 0; i < count && rc == 0; i++)
        if (i == 0 || by_ends(&ends[i - 1], &ends[i]) != 0)
            rc = c->channel(in->config.fabric, ends[i].from, ends[i].to, ends[i].tag, err);
    free(ends);
    return rc;
}

int interpreter_join(struct interpreter *in, struct error *err)
{
    int rc = form_groups(in, err);
    return rc == 0 ? open_channels(in, err) : rc;
}
