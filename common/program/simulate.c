/* simulate.c - the event loop: each rank runs until it must wait for another. */
#include "common/program/simulate.h"

#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last message of one (sender, receiver, tag). */
struct message {
    int from, to;
    uint32_t tag;
    bool taken, waited; /* waited: the sender knows that it is taken */
    double posted, done;
    int64_t count;
};

/* A group as all its members know it, and who has arrived at its next collective. */
struct meeting {
    const struct group *group;
    int arrived;
    double latest, longest;
};

struct rank {
    const struct program *program;
    struct program_cursor cursor;
    int *meetings; /* per group of the program */
    double now, busy, since;
    bool finished, met; /* met: has arrived at its collective */
};

struct world {
    struct rank *ranks;
    int count;
    struct meeting *meetings;
    size_t meeting_count, meeting_capacity;
    struct message *messages;
    size_t message_count, message_capacity;
    const struct timing *timing;
    const struct simulation_trace *trace;
    enum program_kind kind;
    struct error *err;
};

static int find_meeting(struct world *world, const struct group *group)
{
    for (size_t i = 0; i < world->meeting_count; i++)
        if (world->meetings[i].group->count == group->count &&
            memcmp(world->meetings[i].group->ranks, group->ranks,
                   (size_t)group->count * sizeof *group->ranks) == 0)
            return (int)i;
    world->meetings = grow(world->meetings, world->meeting_count, &world->meeting_capacity,
                           sizeof *world->meetings);
    world->meetings[world->meeting_count] = (struct meeting){.group = group};
    return (int)world->meeting_count++;
}

static struct message *find_message(struct world *world, int from, int to, uint32_t tag)
{
    for (size_t i = 0; i < world->message_count; i++) {
        struct message *m = &world->messages[i];
        if (m->from == from && m->to == to && m->tag == tag)
            return m;
    }
    return NULL;
}

static void done(struct world *world, int index, double begin)
{
    struct rank *rank = &world->ranks[index];
    if (world->trace)
        world->trace->done(world->trace->context, index, &rank->cursor, begin, rank->now);
    rank->met = false;
    rank->finished = !program_next(rank->program, world->kind, &rank->cursor);
    rank->since = rank->now;
}

static double seconds(const struct world *world, const struct rank *rank)
{
    return world->timing->seconds(world->timing->context, rank->program, rank->cursor.instruction);
}

static int64_t element_count(const struct rank *rank)
{
    return box_count(&program_pieces(rank->program, rank->cursor.instruction)->box);
}

/* Do two members mean the same collective, and expect of each other what the other gives? */
static bool agree(const struct rank *a, const struct rank *b)
{
    const struct instruction *x = a->cursor.instruction, *y = b->cursor.instruction;
    const struct group *first = &a->program->groups[x->collective.group];
    const struct group *second = &b->program->groups[y->collective.group];
    const int64_t *gives = &a->program->counts[x->collective.counts_first];
    const int64_t *other = &b->program->counts[y->collective.counts_first];
    size_t count = (size_t)first->count;
    if (x->collective.kind != y->collective.kind)
        return false;
    switch (x->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        return x->collective.reduction == y->collective.reduction &&
               element_count(a) == element_count(b);
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER:
        return memcmp(gives, other, count * sizeof *gives) == 0;
    case COLLECTIVE_ALL_TO_ALL:
        return gives[second->own] == other[count + (size_t)first->own] &&
               other[first->own] == gives[count + (size_t)second->own];
    }
    return false;
}

static int check_agreement(struct world *world, int index, int meeting_index)
{
    const struct meeting *meeting = &world->meetings[meeting_index];
    const struct rank *rank = &world->ranks[index];
    for (int i = 0; i < meeting->group->count; i++) {
        int peer = meeting->group->ranks[i];
        const struct rank *member = &world->ranks[peer];
        if (peer == index || !member->met ||
            member->meetings[member->cursor.instruction->collective.group] != meeting_index ||
            agree(rank, member))
            continue;
        return error_set(world->err, -EDEADLK,
                         "rank %d comes to %s of %lld elements where rank %d came to %s of %lld",
                         index, instruction_name(rank->program, rank->cursor.instruction),
                         (long long)element_count(rank), peer,
                         instruction_name(member->program, member->cursor.instruction),
                         (long long)element_count(member));
    }
    return 0;
}

/* A barrier: the last to arrive lets all go. 1: went on, 0: waits, or an error. */
static int collective(struct world *world, int index)
{
    struct rank *rank = &world->ranks[index];
    const struct instruction *instruction = rank->cursor.instruction;
    if (rank->met)
        return 0;
    int meeting_index = rank->meetings[instruction->collective.group];
    assert(world->meetings && "every group has one");
    struct meeting *meeting = &world->meetings[meeting_index];
    if (meeting->arrived == 0)
        meeting->latest = meeting->longest = 0;
    int rc = check_agreement(world, index, meeting_index);
    if (rc < 0)
        return rc;
    double takes = seconds(world, rank);
    rank->met = true;
    meeting->latest = rank->now > meeting->latest ? rank->now : meeting->latest;
    meeting->longest = takes > meeting->longest ? takes : meeting->longest;
    if (++meeting->arrived < meeting->group->count)
        return 0;
    meeting->arrived = 0;
    for (int i = 0; i < meeting->group->count; i++) {
        int member = meeting->group->ranks[i];
        world->ranks[member].now = meeting->latest + meeting->longest;
        done(world, member, world->ranks[member].since);
    }
    return 1;
}

static int send(struct world *world, int index)
{
    struct rank *rank = &world->ranks[index];
    const struct instruction *instruction = rank->cursor.instruction;
    struct message *message =
        find_message(world, index, instruction->message.peer, instruction->message.tag);
    if (!message) {
        world->messages = grow(world->messages, world->message_count, &world->message_capacity,
                               sizeof *world->messages);
        message = &world->messages[world->message_count++];
        *message = (struct message){.from = index,
                                    .to = instruction->message.peer,
                                    .tag = instruction->message.tag,
                                    .taken = true,
                                    .waited = true};
    }
    if (!message->waited)
        return error_set(world->err, -EDEADLK,
                         "rank %d comes to send to rank %d while the message before it may still "
                         "be on its way: it has not waited for it",
                         index, message->to);
    message->taken = message->waited = false;
    message->posted = rank->now;
    message->count = element_count(rank);
    done(world, index, rank->now);
    return 1;
}

static int receive(struct world *world, int index)
{
    struct rank *rank = &world->ranks[index];
    const struct instruction *instruction = rank->cursor.instruction;
    struct message *message =
        find_message(world, instruction->message.peer, index, instruction->message.tag);
    if (!message || message->taken)
        return 0;
    if (message->count != element_count(rank))
        return error_set(world->err, -EDEADLK,
                         "rank %d receives %lld elements where rank %d sends it %lld", index,
                         (long long)element_count(rank), message->from, (long long)message->count);
    double begin = rank->now;
    rank->now = (message->posted > rank->now ? message->posted : rank->now) + seconds(world, rank);
    message->taken = true;
    message->done = rank->now;
    done(world, index, begin);
    return 1;
}

static int wait_sent(struct world *world, int index)
{
    struct rank *rank = &world->ranks[index];
    const struct instruction *instruction = rank->cursor.instruction;
    struct message *message =
        find_message(world, index, instruction->message.peer, instruction->message.tag);
    double begin = rank->now;
    if (message && !message->taken)
        return 0;
    if (message && message->done > rank->now)
        rank->now = message->done;
    if (message)
        message->waited = true;
    done(world, index, begin);
    return 1;
}

/* One instruction of a rank: 1 done, 0 it has to wait, or an error. */
static int advance(struct world *world, int index)
{
    struct rank *rank = &world->ranks[index];
    double begin = rank->now;
    switch (rank->cursor.instruction->kind) {
    case INSTRUCTION_COLLECTIVE:
        return collective(world, index);
    case INSTRUCTION_SEND:
        return send(world, index);
    case INSTRUCTION_RECEIVE:
        return receive(world, index);
    case INSTRUCTION_WAIT:
        return wait_sent(world, index);
    default:
        rank->now += seconds(world, rank);
        rank->busy += rank->now - begin;
        done(world, index, begin);
        return 1;
    }
}

static int deadlock(struct world *world)
{
    char text[ERROR_SIZE] = "";
    int used = 0;
    for (int i = 0; i < world->count && used < (int)sizeof text - 1; i++) {
        const struct rank *rank = &world->ranks[i];
        if (rank->finished)
            continue;
        const struct instruction *instruction = rank->cursor.instruction;
        used += snprintf(text + used, sizeof text - (size_t)used, "%srank %d in %s",
                         used ? "; " : "", i, instruction_name(rank->program, instruction));
        if (used >= (int)sizeof text - 1)
            break;
        if (instruction->kind != INSTRUCTION_COLLECTIVE) {
            used += snprintf(text + used, sizeof text - (size_t)used, " waits for rank %d",
                             instruction->message.peer);
            continue;
        }
        const struct group *group = &rank->program->groups[instruction->collective.group];
        const char *between = " waits for rank ";
        for (int j = 0; j < group->count && used < (int)sizeof text - 1; j++) {
            const struct rank *member = &world->ranks[group->ranks[j]];
            bool here = !member->finished && member->met &&
                        member->meetings[member->cursor.instruction->collective.group] ==
                            rank->meetings[instruction->collective.group];
            if (!here) {
                used += snprintf(text + used, sizeof text - (size_t)used, "%s%d", between,
                                 group->ranks[j]);
                between = ", ";
            }
        }
    }
    return error_set(world->err, -EDEADLK, "deadlock: %s", text);
}

static int run(struct world *world)
{
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < world->count; i++) {
            int rc = 1;
            while (rc == 1 && !world->ranks[i].finished) {
                rc = advance(world, i);
                progress = progress || rc == 1;
            }
            if (rc < 0)
                return rc;
        }
    }
    for (int i = 0; i < world->count; i++)
        if (!world->ranks[i].finished)
            return deadlock(world);
    for (size_t i = 0; i < world->message_count; i++)
        if (!world->messages[i].taken)
            return error_set(world->err, -EDEADLK, "rank %d never takes what rank %d sends it",
                             world->messages[i].to, world->messages[i].from);
    return 0;
}

int simulate(const struct program *const *programs, int count, enum program_kind kind,
             const struct timing *timing, const struct simulation_trace *trace,
             struct simulation *out, struct error *err)
{
    struct world world = {
        .count = count, .timing = timing, .trace = trace, .kind = kind, .err = err};
    world.ranks = xcalloc((size_t)count, sizeof *world.ranks);
    for (int i = 0; i < count; i++) {
        struct rank *rank = &world.ranks[i];
        rank->program = programs[i];
        rank->meetings = xcalloc(programs[i]->group_count, sizeof *rank->meetings);
        for (size_t g = 0; g < programs[i]->group_count; g++)
            rank->meetings[g] = find_meeting(&world, &programs[i]->groups[g]);
        rank->finished = !program_next(rank->program, kind, &rank->cursor);
    }
    int rc = run(&world);
    if (rc == 0) {
        *out = (struct simulation){0};
        for (int i = 0; i < count; i++) {
            out->step_s = world.ranks[i].now > out->step_s ? world.ranks[i].now : out->step_s;
            out->busy_s += world.ranks[i].busy / count;
        }
        for (int i = 0; i < count; i++)
            out->exposed_s += (out->step_s - world.ranks[i].busy) / count;
    }
    for (int i = 0; i < count; i++)
        free(world.ranks[i].meetings);
    free(world.ranks);
    free(world.meetings);
    free(world.messages);
    return rc;
}
