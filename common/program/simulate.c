/* simulate.c - the event loop: every lane proceeds until it has to wait, then time advances to the
 * next end of an activity. */
#include "common/program/simulate_internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

void world_wake(struct world *world, struct lane *lane)
{
    if (lane->pending)
        return;
    world->pending[(world->pending_first + world->pending_count++) % (world->ranks * QUEUES)] =
        lane;
    lane->pending = true;
}

double world_seconds(const struct world *world, const struct lane *lane)
{
    return world->timing->seconds(world->timing->context, lane->walk.program,
                                  lane_instruction(lane));
}

static struct lane *sibling(const struct world *world, const struct lane *lane)
{
    return world_lane(world, lane->rank, program_other_queue(lane->walk.queue));
}

static void come_to_next(struct lane *lane)
{
    lane->came = false;
    lane->state = program_walk_next(&lane->walk) ? LANE_READY : LANE_FINISHED;
}

/* The lane has finished its instruction; the other lane of its rank may have waited for that. */
static void pass(struct world *world, struct lane *lane)
{
    if (world->trace)
        world->trace->done(world->trace->context, lane->rank, &lane->walk.cursor, lane->begun_s,
                           world->now_s);
    lane->done = lane->walk.number;
    come_to_next(lane);
    if (sibling(world, lane)->state == LANE_AWAITS)
        world_wake(world, sibling(world, lane));
}

/* Begins the lane's instruction. Returns 1 when it is done at once, 0 when the lane waits or runs,
 * or a negative errno. */
static int begin(struct world *world, struct lane *lane)
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

static bool may_go_on(const struct lane *lane)
{
    return lane->state == LANE_READY || lane->state == LANE_AWAITS || lane->state == LANE_BLOCKED;
}

/* Lets the lane proceed as far as it can without time passing. */
static int proceed(struct world *world, struct lane *lane)
{
    int rc = 1;
    while (rc == 1 && may_go_on(lane)) {
        if (sibling(world, lane)->done < program_walk_awaits(&lane->walk)) {
            lane->state = LANE_AWAITS;
            return 0;
        }
        if (!lane->came)
            lane->begun_s = world->now_s;
        lane->came = true;
        rc = begin(world, lane);
        if (rc == 1)
            pass(world, lane);
    }
    return rc;
}

static int proceed_all(struct world *world)
{
    int rc = 0;
    while (world->pending_count > 0 && rc >= 0) {
        struct lane *lane = world->pending[world->pending_first];
        world->pending_first = (world->pending_first + 1) % (world->ranks * QUEUES);
        world->pending_count--;
        lane->pending = false;
        rc = proceed(world, lane);
    }
    return rc < 0 ? rc : 0;
}

static bool moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

static void end(struct world *world, const struct activity *activity)
{
    for (int i = 0; i < activity->count; i++) {
        struct lane *lane = activity->lanes[i];
        if (!moves(lane_instruction(lane)))
            lane->busy_s += world->now_s - lane->begun_s;
        if (lane_instruction(lane)->kind == INSTRUCTION_RECEIVE)
            meet_received(world, lane);
        pass(world, lane);
        world_wake(world, lane);
    }
}

static int run(struct world *world)
{
    const struct activity *ended;
    for (int i = 0; i < world->ranks * QUEUES; i++)
        world_wake(world, &world->lanes[i]);
    do {
        int rc = proceed_all(world);
        if (rc < 0)
            return rc;
        clock_adjust(world);
        ended = clock_end(world);
        if (ended)
            end(world, ended);
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
                come_to_next(lane);
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
    int rc = run(&world);
    if (rc == 0) {
        *out = (struct simulation){.step_s = world.now_s};
        for (int rank = 0; rank < count; rank++)
            out->busy_s += world_lane(&world, programs[rank]->rank, QUEUE_COMPUTE)->busy_s / count;
        out->exposed_s = out->step_s - out->busy_s;
    }
    world_finish(&world);
    return rc;
}
