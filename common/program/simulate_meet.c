/* simulate_meet.c - where ranks meet: collectives as barriers, messages as rendezvous, and the
 * report of a deadlock. */
#include "common/program/simulate_internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- collectives ---- */

static bool same_group(const struct group *a, const struct group *b)
{
    return a->queue == b->queue && a->count == b->count &&
           memcmp(a->ranks, b->ranks, (size_t)a->count * sizeof *a->ranks) == 0;
}

static int find_meeting(struct world *world, const struct group *group)
{
    for (size_t i = 0; i < world->meeting_count; i++)
        if (same_group(world->meetings[i].group, group))
            return (int)i;
    world->meetings = grow(world->meetings, world->meeting_count, &world->meeting_capacity,
                           sizeof *world->meetings);
    world->meetings[world->meeting_count] = (struct meeting){
        .group = group, .lanes = xcalloc((size_t)group->count, sizeof(struct lane *))};
    for (int i = 0; i < group->count; i++)
        world->meetings[world->meeting_count].members += world_leads(world, group->ranks[i]);
    return (int)world->meeting_count++;
}

void meet_prepare(struct world *world)
{
    world->meetings_of = xcalloc((size_t)world->ranks, sizeof *world->meetings_of);
    for (int rank = 0; rank < world->ranks; rank++) {
        const struct program *program = world->programs[rank];
        if (!world_leads(world, rank))
            continue;
        world->meetings_of[rank] = xcalloc(program->group_count, sizeof(int));
        for (size_t g = 0; g < program->group_count; g++)
            world->meetings_of[rank][g] = find_meeting(world, &program->groups[g]);
    }
}

static struct meeting *meeting_of(const struct world *world, const struct lane *lane)
{
    int group = lane_instruction(lane)->collective.group;
    return &world->meetings[world->meetings_of[lane->rank][group]];
}

static int64_t element_count(const struct lane *lane)
{
    const struct instruction *instruction = lane_instruction(lane);
    const struct piece *pieces = program_pieces(lane->walk.program, instruction);
    bool meets = instruction->kind == INSTRUCTION_COLLECTIVE;
    int64_t count = 0;
    for (int part = 0; part < (meets ? collective_parts(instruction) : 1); part++)
        count += box_count(&pieces[(size_t)part * 2].box);
    return count;
}

/* Are two members at the same collective, and does each expect from the other what it gives? */
static bool agree(const struct lane *a, const struct lane *b)
{
    const struct program *p = a->walk.program, *q = b->walk.program;
    const struct instruction *x = lane_instruction(a), *y = lane_instruction(b);
    const struct group *first = &p->groups[x->collective.group];
    const struct group *second = &q->groups[y->collective.group];
    const int64_t *gives = &p->counts[x->collective.counts_first];
    const int64_t *other = &q->counts[y->collective.counts_first];
    size_t count = (size_t)first->count;
    if (x->collective.kind != y->collective.kind)
        return false;
    switch (x->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        return x->collective.reduction == y->collective.reduction &&
               element_count(a) == element_count(b);
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER:
        count *= (size_t)collective_parts(x);
        return collective_parts(x) == collective_parts(y) &&
               memcmp(gives, other, count * sizeof *gives) == 0;
    case COLLECTIVE_ALL_TO_ALL:
        return gives[second->own] == other[count + (size_t)first->own] &&
               other[first->own] == gives[count + (size_t)second->own];
    }
    return false;
}

static int check_agreement(struct world *world, const struct lane *lane,
                           const struct meeting *meeting)
{
    for (int i = 0; i < meeting->arrived; i++) {
        const struct lane *member = meeting->lanes[i];
        if (agree(lane, member))
            continue;
        return error_set(world->err, -EDEADLK,
                         "rank %d comes to %s of %lld elements where rank %d came to %s of %lld",
                         lane->rank, instruction_name(lane->walk.program, lane_instruction(lane)),
                         (long long)element_count(lane), member->rank,
                         instruction_name(member->walk.program, lane_instruction(member)),
                         (long long)element_count(member));
    }
    return 0;
}

/* The last member to arrive starts the collective, which takes the longest of its members' times.
 */
int meet_collective(struct world *world, struct lane *lane)
{
    struct meeting *meeting = meeting_of(world, lane);
    int rc = check_agreement(world, lane, meeting);
    if (rc < 0)
        return rc;
    double seconds = world_seconds(world, lane);
    if (meeting->arrived == 0 || seconds > meeting->longest_s)
        meeting->longest_s = seconds;
    lane->state = LANE_MEETS;
    meeting->lanes[meeting->arrived++] = lane;
    if (meeting->arrived < meeting->members)
        return 0;
    meeting->arrived = 0;
    clock_begin(world, &meeting->activity, meeting->lanes, meeting->members, meeting->longest_s);
    return 0;
}

/* ---- messages ---- */

static struct message *find_message(const struct world *world, int from, int to, uint32_t tag)
{
    for (size_t i = 0; i < world->message_count; i++) {
        struct message *m = &world->messages[i];
        if (m->from == from && m->to == to && m->tag == tag)
            return m;
    }
    return NULL;
}

static struct message *sent_message(const struct world *world, const struct lane *lane)
{
    const struct instruction *instruction = lane_instruction(lane);
    return find_message(world, lane->rank, instruction->message.peer, instruction->message.tag);
}

static struct message *awaited_message(const struct world *world, const struct lane *lane)
{
    const struct instruction *instruction = lane_instruction(lane);
    return find_message(world, instruction->message.peer, lane->rank, instruction->message.tag);
}

/* Wakes the lanes of a rank that wait for a message to come or to be taken. */
static void wake_blocked(struct world *world, int rank)
{
    for (int queue = 0; queue < QUEUES; queue++)
        if (world_lane(world, rank, queue)->state == LANE_BLOCKED)
            world_wake(world, world_lane(world, rank, queue));
}

int meet_send(struct world *world, struct lane *lane)
{
    const struct instruction *instruction = lane_instruction(lane);
    struct message *message = sent_message(world, lane);
    if (!message) {
        world->messages = grow(world->messages, world->message_count, &world->message_capacity,
                               sizeof *world->messages);
        message = &world->messages[world->message_count++];
        *message = (struct message){.from = lane->rank,
                                    .to = instruction->message.peer,
                                    .tag = instruction->message.tag,
                                    .waited = true};
    }
    if (!message->waited)
        return error_set(world->err, -EDEADLK,
                         "rank %d comes to send to rank %d while the message before it may still "
                         "be on its way: it has not waited for it",
                         lane->rank, message->to);
    message->taken = message->waited = false;
    message->count = element_count(lane);
    wake_blocked(world, message->to);
    return 1;
}

int meet_receive(struct world *world, struct lane *lane)
{
    struct message *message = awaited_message(world, lane);
    lane->state = LANE_BLOCKED;
    if (!message || message->taken)
        return 0;
    if (message->count != element_count(lane))
        return error_set(world->err, -EDEADLK,
                         "rank %d receives %lld elements where rank %d sends it %lld", lane->rank,
                         (long long)element_count(lane), message->from, (long long)message->count);
    clock_begin(world, &lane->own, &lane->self, 1, world_seconds(world, lane));
    return 0;
}

void meet_received(struct world *world, const struct lane *lane)
{
    struct message *message = awaited_message(world, lane);
    message->taken = true;
    wake_blocked(world, message->from);
}

int meet_wait(struct world *world, struct lane *lane)
{
    struct message *message = sent_message(world, lane);
    lane->state = LANE_BLOCKED;
    if (message && !message->taken)
        return 0;
    if (message)
        message->waited = true;
    return 1;
}

/* ---- deadlocks ---- */

static int say_members(const struct world *world, const struct lane *lane, char *text, int size)
{
    const struct meeting *meeting = meeting_of(world, lane);
    const char *between = " waits for rank ";
    int used = 0;
    for (int i = 0; i < meeting->group->count && used < size - 1; i++) {
        int peer = meeting->group->ranks[i];
        bool here = !world_leads(world, peer);
        for (int j = 0; j < meeting->arrived; j++)
            here = here || meeting->lanes[j]->rank == peer;
        if (here)
            continue;
        used += snprintf(text + used, (size_t)(size - used), "%s%d", between, peer);
        between = ", ";
    }
    return used;
}

/* Lanes that wait for the other lane of their rank are left out: that one tells the reason. */
int meet_deadlock(const struct world *world)
{
    char text[ERROR_SIZE] = "";
    int used = 0, size = sizeof text;
    for (int i = 0; i < world->ranks * QUEUES && used < size - 1; i++) {
        const struct lane *lane = &world->lanes[i];
        if (lane->state != LANE_BLOCKED && lane->state != LANE_MEETS)
            continue;
        const struct instruction *instruction = lane_instruction(lane);
        used += snprintf(text + used, (size_t)(size - used), "%srank %d in %s", used ? "; " : "",
                         lane->rank, instruction_name(lane->walk.program, instruction));
        if (used >= size - 1)
            break;
        used += lane->state == LANE_MEETS
                    ? say_members(world, lane, text + used, size - used)
                    : snprintf(text + used, (size_t)(size - used), " waits for rank %d",
                               instruction->message.peer);
    }
    return error_set(world->err, -EDEADLK, "deadlock: %s", text);
}
