/* simulate.c - the event loop: every lane proceeds until it has to wait, then time advances to the
 * next end of an activity.
 *
 * The two lanes of a rank share its cores and links, so while both run, each is slowed by a factor
 * that the timing gives. A collective is as slow as its slowest member. When the factor of an
 * activity changes, the work done so far is subtracted and its end recomputed. Times are in
 * seconds, since the step began. */
#include "coordinator/simulation/simulate.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Something that takes time: an instruction of one lane, or a collective of several. */
struct activity {
    struct lane **lanes;
    int count;
    double left_s;  /* work left at since_s, in seconds without slowdown */
    double since_s; /* when left_s and factor were set */
    double factor;  /* slowdown since then, at least 1 */
    double ends_s;
    int place; /* index in world.clock */
};

enum lane_state {
    LANE_READY,   /* at an instruction that it has not looked at yet */
    LANE_AWAITS,  /* waits for the other lane of its rank */
    LANE_MEETS,   /* has arrived at a collective, others have not */
    LANE_BLOCKED, /* waits for a message to come or to be taken */
    LANE_RUNS,    /* has an activity */
    LANE_FINISHED,
};

/* One queue of one rank. */
struct lane {
    int rank;
    enum lane_state state;
    bool pending; /* is in world.pending */
    bool came;    /* no longer waits for the other lane; begun_s is set */
    struct program_walk walk;
    uint64_t done;                  /* number of the last instruction it finished */
    double begun_s, busy_s;         /* when its instruction began; time spent at work */
    double factor;                  /* by which it is slowed by the other lane */
    struct lane *self;              /* itself: the lane list of its own activity */
    struct activity own, *activity; /* the latter may be its meeting's */
};

/* The last message of one (sender, receiver, tag). */
struct message {
    int from, to;
    uint32_t tag;
    bool taken;    /* the receiver has it */
    bool waited;   /* the sender has waited for that, and may send again */
    int64_t count; /* elements */
};

/* A group of all its members, and who has arrived at its next collective. */
struct meeting {
    const struct group *group;
    struct lane **lanes;  /* those that have arrived */
    int members, arrived; /* counting simulated ranks only */
    double longest_s;     /* the longest time among those that have arrived */
    struct activity activity;
};

struct world {
    const struct program *const *programs;
    int ranks;
    struct lane *lanes; /* [rank * QUEUES + queue] */
    int **meetings_of;  /* [rank][group of its program]: index in meetings */
    struct meeting *meetings;
    size_t meeting_count, meeting_capacity;
    struct message *messages;
    size_t message_count, message_capacity;
    struct lane **pending; /* a ring buffer of lanes to look at, first come first served */
    int pending_first, pending_count;
    double now_s;
    struct activity **clock; /* what runs: a heap by ends_s */
    int clock_count;
    bool *touched; /* per rank: a lane of it began or ended something since clock_adjust() */
    int *touched_ranks, touched_count;
    const struct timing *timing;
    const struct simulation_trace *trace;
    struct error *err;
};

static inline struct lane *world_lane(const struct world *world, int rank, int queue)
{
    return &world->lanes[rank * QUEUES + queue];
}

/* Is this rank simulated, or is it represented by another with the same program? */
static inline bool world_leads(const struct world *world, int rank)
{
    return world->programs[rank]->rank == rank;
}

static inline const struct instruction *lane_instruction(const struct lane *lane)
{
    return lane->walk.cursor.instruction;
}

/* Queue the lane to be looked at again. */
static void world_wake(struct world *world, struct lane *lane)
{
    if (lane->pending)
        return;
    world->pending[(world->pending_first + world->pending_count++) % (world->ranks * QUEUES)] =
        lane;
    lane->pending = true;
}

/* How long the lane's instruction takes. */
static double world_seconds(const struct world *world, const struct lane *lane)
{
    return world->timing->seconds(world->timing->context, lane->walk.program,
                                  lane_instruction(lane));
}

/* A heap: earliest end first, ties by the lowest rank. */

static bool activity_earlier(const struct activity *a, const struct activity *b)
{
    if (a->ends_s != b->ends_s)
        return a->ends_s < b->ends_s;
    return a->lanes[0]->rank < b->lanes[0]->rank;
}

static void clock_put(struct world *world, int place, struct activity *activity)
{
    world->clock[place] = activity;
    activity->place = place;
}

static void clock_sift(struct world *world, struct activity *activity)
{
    int place = activity->place, count = world->clock_count;
    for (; place > 0 && activity_earlier(activity, world->clock[(place - 1) / 2]);
         place = (place - 1) / 2)
        clock_put(world, place, world->clock[(place - 1) / 2]);
    for (;;) {
        int child = 2 * place + 1;
        if (child + 1 < count && activity_earlier(world->clock[child + 1], world->clock[child]))
            child++;
        if (child >= count || !activity_earlier(world->clock[child], activity))
            break;
        clock_put(world, place, world->clock[child]);
        place = child;
    }
    clock_put(world, place, activity);
}

/* Activities. */

static void clock_touch(struct world *world, int rank)
{
    if (!world->touched[rank])
        world->touched_ranks[world->touched_count++] = rank;
    world->touched[rank] = true;
}

/* Begin an activity of these lanes now, with this much work. */
static void clock_begin(struct world *world, struct activity *activity, struct lane **lanes,
                        int count, double seconds)
{
    *activity = (struct activity){.lanes = lanes,
                                  .count = count,
                                  .left_s = seconds,
                                  .since_s = world->now_s,
                                  .factor = 1,
                                  .ends_s = world->now_s + seconds,
                                  .place = world->clock_count++};
    for (int i = 0; i < count; i++) {
        lanes[i]->state = LANE_RUNS;
        lanes[i]->activity = activity;
        lanes[i]->factor = 1;
        clock_touch(world, lanes[i]->rank);
    }
    clock_sift(world, activity);
}

/* Advance time to the next end of an activity and remove it; NULL when nothing runs. */
static struct activity *clock_end(struct world *world)
{
    if (world->clock_count == 0)
        return NULL;
    struct activity *first = world->clock[0], *last = world->clock[--world->clock_count];
    if (first != last) {
        last->place = 0;
        clock_sift(world, last);
    }
    for (int i = 0; i < first->count; i++)
        clock_touch(world, first->lanes[i]->rank);
    world->now_s = first->ends_s;
    return first;
}

/* Who slows whom. */

static void activity_set_factor(struct world *world, struct activity *activity)
{
    double factor = 1;
    for (int i = 0; i < activity->count; i++)
        factor = activity->lanes[i]->factor > factor ? activity->lanes[i]->factor : factor;
    if (factor == activity->factor)
        return;
    activity->left_s -= (world->now_s - activity->since_s) / activity->factor;
    activity->since_s = world->now_s;
    activity->factor = factor;
    activity->ends_s = world->now_s + activity->left_s * factor;
    clock_sift(world, activity);
}

static void clock_adjust_lane(struct world *world, struct lane *lane, const struct lane *other)
{
    double factor = 1;
    if (lane->state != LANE_RUNS)
        return;
    if (other->state == LANE_RUNS && world->timing->slowdown)
        factor = world->timing->slowdown(world->timing->context, world->programs[lane->rank],
                                         lane_instruction(lane), lane_instruction(other));
    if (factor == lane->factor)
        return;
    lane->factor = factor;
    activity_set_factor(world, lane->activity);
}

/* Update who slows whom. To be called once everything that can begin has begun. */
static void clock_adjust(struct world *world)
{
    for (int i = 0; i < world->touched_count; i++) {
        int rank = world->touched_ranks[i];
        struct lane *compute = world_lane(world, rank, QUEUE_COMPUTE);
        struct lane *communication = world_lane(world, rank, QUEUE_COMMUNICATION);
        world->touched[rank] = false;
        clock_adjust_lane(world, compute, communication);
        clock_adjust_lane(world, communication, compute);
    }
    world->touched_count = 0;
}

/* Collectives. */

static bool meet_same_group(const struct group *a, const struct group *b)
{
    return a->queue == b->queue && a->count == b->count &&
           memcmp(a->ranks, b->ranks, (size_t)a->count * sizeof *a->ranks) == 0;
}

static int meet_find(struct world *world, const struct group *group)
{
    for (size_t i = 0; i < world->meeting_count; i++)
        if (meet_same_group(world->meetings[i].group, group))
            return (int)i;
    world->meetings = grow(world->meetings, world->meeting_count, &world->meeting_capacity,
                           sizeof *world->meetings);
    world->meetings[world->meeting_count] = (struct meeting){
        .group = group, .lanes = xcalloc((size_t)group->count, sizeof(struct lane *))};
    for (int i = 0; i < group->count; i++)
        world->meetings[world->meeting_count].members += world_leads(world, group->ranks[i]);
    return (int)world->meeting_count++;
}

/* Find the groups of all ranks. */
static void meet_prepare(struct world *world)
{
    world->meetings_of = xcalloc((size_t)world->ranks, sizeof *world->meetings_of);
    for (int rank = 0; rank < world->ranks; rank++) {
        const struct program *program = world->programs[rank];
        if (!world_leads(world, rank))
            continue;
        world->meetings_of[rank] = xcalloc(program->group_count, sizeof(int));
        for (size_t g = 0; g < program->group_count; g++)
            world->meetings_of[rank][g] = meet_find(world, &program->groups[g]);
    }
}

static struct meeting *meet_of(const struct world *world, const struct lane *lane)
{
    int group = lane_instruction(lane)->collective.group;
    return &world->meetings[world->meetings_of[lane->rank][group]];
}

static int64_t lane_elements(const struct lane *lane)
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
static bool meet_agree(const struct lane *a, const struct lane *b)
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
               lane_elements(a) == lane_elements(b);
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

static int meet_check(struct world *world, const struct lane *lane, const struct meeting *meeting)
{
    for (int i = 0; i < meeting->arrived; i++) {
        const struct lane *member = meeting->lanes[i];
        if (meet_agree(lane, member))
            continue;
        return error_set(world->err, -EDEADLK,
                         "rank %d comes to %s of %lld elements where rank %d came to %s of %lld",
                         lane->rank, instruction_name(lane->walk.program, lane_instruction(lane)),
                         (long long)lane_elements(lane), member->rank,
                         instruction_name(member->walk.program, lane_instruction(member)),
                         (long long)lane_elements(member));
    }
    return 0;
}

/* The last member to arrive starts the collective, which takes the longest of its members' times.
 */
static int meet_collective(struct world *world, struct lane *lane)
{
    struct meeting *meeting = meet_of(world, lane);
    int rc = meet_check(world, lane, meeting);
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

/* Messages. */

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
static void meet_wake(struct world *world, int rank)
{
    for (int queue = 0; queue < QUEUES; queue++)
        if (world_lane(world, rank, queue)->state == LANE_BLOCKED)
            world_wake(world, world_lane(world, rank, queue));
}

static int meet_send(struct world *world, struct lane *lane)
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
    message->count = lane_elements(lane);
    meet_wake(world, message->to);
    return 1;
}

static int meet_receive(struct world *world, struct lane *lane)
{
    struct message *message = awaited_message(world, lane);
    lane->state = LANE_BLOCKED;
    if (!message || message->taken)
        return 0;
    if (message->count != lane_elements(lane))
        return error_set(world->err, -EDEADLK,
                         "rank %d receives %lld elements where rank %d sends it %lld", lane->rank,
                         (long long)lane_elements(lane), message->from, (long long)message->count);
    clock_begin(world, &lane->own, &lane->self, 1, world_seconds(world, lane));
    return 0;
}

/* End the lane's receive. */
static void meet_received(struct world *world, const struct lane *lane)
{
    struct message *message = awaited_message(world, lane);
    message->taken = true;
    meet_wake(world, message->from);
}

static int meet_wait(struct world *world, struct lane *lane)
{
    struct message *message = sent_message(world, lane);
    lane->state = LANE_BLOCKED;
    if (message && !message->taken)
        return 0;
    if (message)
        message->waited = true;
    return 1;
}

/* Deadlocks. */

static int meet_say_members(const struct world *world, const struct lane *lane, char *text,
                            int size)
{
    const struct meeting *meeting = meet_of(world, lane);
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

/* -EDEADLK, with a text that says which rank waits for which. Lanes that wait for the other lane of
 * their rank are left out: that one tells the reason. */
static int meet_deadlock(const struct world *world)
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
                    ? meet_say_members(world, lane, text + used, size - used)
                    : snprintf(text + used, (size_t)(size - used), " waits for rank %d",
                               instruction->message.peer);
    }
    return error_set(world->err, -EDEADLK, "deadlock: %s", text);
}

/* Lanes. */

static struct lane *lane_sibling(const struct world *world, const struct lane *lane)
{
    return world_lane(world, lane->rank, program_other_queue(lane->walk.queue));
}

static void lane_come_to_next(struct lane *lane)
{
    lane->came = false;
    lane->state = program_walk_next(&lane->walk) ? LANE_READY : LANE_FINISHED;
}

/* The lane has finished its instruction; the other lane of its rank may have waited for that. */
static void lane_pass(struct world *world, struct lane *lane)
{
    if (world->trace)
        world->trace->done(world->trace->context, lane->rank, &lane->walk.cursor, lane->begun_s,
                           world->now_s);
    lane->done = lane->walk.number;
    lane_come_to_next(lane);
    if (lane_sibling(world, lane)->state == LANE_AWAITS)
        world_wake(world, lane_sibling(world, lane));
}

/* Begins the lane's instruction. Returns 1 when it is done at once, 0 when the lane waits or runs,
 * or a negative errno. */
static int lane_begin(struct world *world, struct lane *lane)
{
    switch (lane_instruction(lane)->kind) {
    case INSTRUCTION_COLLECTIVE:
        return meet_collective(world, lane);
    case INSTRUCTION_SEND:
        return meet_send(world, lane);
    case INSTRUCTION_RECEIVE:
        return meet_receive(world, lane);
    case INSTRUCTION_WAIT:
        return meet_wait(world, lane);
    default:
        clock_begin(world, &lane->own, &lane->self, 1, world_seconds(world, lane));
        return 0;
    }
}

static bool lane_may_go_on(const struct lane *lane)
{
    return lane->state == LANE_READY || lane->state == LANE_AWAITS || lane->state == LANE_BLOCKED;
}

/* Lets the lane proceed as far as it can without time passing. */
static int lane_proceed(struct world *world, struct lane *lane)
{
    int rc = 1;
    while (rc == 1 && lane_may_go_on(lane)) {
        if (lane_sibling(world, lane)->done < program_walk_awaits(&lane->walk)) {
            lane->state = LANE_AWAITS;
            return 0;
        }
        if (!lane->came)
            lane->begun_s = world->now_s;
        lane->came = true;
        rc = lane_begin(world, lane);
        if (rc == 1)
            lane_pass(world, lane);
    }
    return rc;
}

static int world_proceed(struct world *world)
{
    int rc = 0;
    while (world->pending_count > 0 && rc >= 0) {
        struct lane *lane = world->pending[world->pending_first];
        world->pending_first = (world->pending_first + 1) % (world->ranks * QUEUES);
        world->pending_count--;
        lane->pending = false;
        rc = lane_proceed(world, lane);
    }
    return rc < 0 ? rc : 0;
}

static bool instruction_moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

static void world_end(struct world *world, const struct activity *activity)
{
    for (int i = 0; i < activity->count; i++) {
        struct lane *lane = activity->lanes[i];
        if (!instruction_moves(lane_instruction(lane)))
            lane->busy_s += world->now_s - lane->begun_s;
        if (lane_instruction(lane)->kind == INSTRUCTION_RECEIVE)
            meet_received(world, lane);
        lane_pass(world, lane);
        world_wake(world, lane);
    }
}

static int world_run(struct world *world)
{
    const struct activity *ended;
    for (int i = 0; i < world->ranks * QUEUES; i++)
        world_wake(world, &world->lanes[i]);
    do {
        int rc = world_proceed(world);
        if (rc < 0)
            return rc;
        clock_adjust(world);
        ended = clock_end(world);
        if (ended)
            world_end(world, ended);
    } while (ended);
    for (int i = 0; i < world->ranks * QUEUES; i++)
        if (world->lanes[i].state != LANE_FINISHED)
            return meet_deadlock(world);
    for (size_t i = 0; i < world->message_count; i++)
        if (!world->messages[i].taken)
            return error_set(world->err, -EDEADLK, "rank %d never takes what rank %d sends it",
                             world->messages[i].to, world->messages[i].from);
    return 0;
}

static void world_init(struct world *world, enum program_kind kind)
{
    size_t ranks = (size_t)world->ranks, lanes = ranks * QUEUES;
    world->lanes = xcalloc(lanes, sizeof *world->lanes);
    world->pending = xcalloc(lanes, sizeof(struct lane *));
    world->clock = xcalloc(lanes, sizeof(struct activity *));
    world->touched = xcalloc(ranks, sizeof *world->touched);
    world->touched_ranks = xcalloc(ranks, sizeof *world->touched_ranks);
    for (int rank = 0; rank < world->ranks; rank++)
        for (int queue = 0; queue < QUEUES; queue++) {
            struct lane *lane = world_lane(world, rank, queue);
            lane->rank = rank;
            lane->self = lane;
            lane->state = LANE_FINISHED;
            if (!world_leads(world, rank))
                continue;
            program_walk_init(&lane->walk, world->programs[rank], (enum queue)queue);
            program_walk_begin(&lane->walk, kind);
            if (queue == QUEUE_COMPUTE || program_overlaps(world->programs[rank]))
                lane_come_to_next(lane);
        }
    meet_prepare(world);
}

static void world_finish(struct world *world)
{
    for (int i = 0; i < world->ranks * QUEUES; i++)
        program_walk_finish(&world->lanes[i].walk);
    for (int rank = 0; rank < world->ranks; rank++)
        free(world->meetings_of[rank]);
    for (size_t i = 0; i < world->meeting_count; i++)
        free(world->meetings[i].lanes);
    free(world->lanes);
    free(world->meetings_of);
    free(world->meetings);
    free(world->messages);
    free(world->pending);
    free(world->clock);
    free(world->touched);
    free(world->touched_ranks);
}

int simulate(const struct program *const *programs, int count, enum program_kind kind,
             const struct timing *timing, const struct simulation_trace *trace,
             struct simulation *out, struct error *err)
{
    struct world world = {
        .programs = programs, .ranks = count, .timing = timing, .trace = trace, .err = err};
    world_init(&world, kind);
    int rc = world_run(&world);
    if (rc == 0) {
        *out = (struct simulation){.step_s = world.now_s};
        for (int rank = 0; rank < count; rank++)
            out->busy_s += world_lane(&world, programs[rank]->rank, QUEUE_COMPUTE)->busy_s / count;
        out->exposed_s = out->step_s - out->busy_s;
    }
    world_finish(&world);
    return rc;
}
