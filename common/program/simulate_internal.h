/* simulate_internal.h - what the parts of the simulation share; nobody else includes it.
 *
 * simulate.c leads each queue of each rank through its step, simulate_meet.c has ranks meet in
 * collectives and messages, simulate_clock.c knows what runs and when it ends. */
#ifndef COMMON_PROGRAM_SIMULATE_INTERNAL_H
#define COMMON_PROGRAM_SIMULATE_INTERNAL_H

#include "common/program/simulate.h"
#include "common/program/walk.h"

/* What takes time: an instruction of one lane, or a collective of many. */
struct activity {
    struct lane **lanes;
    int count;
    double left_s;          /* of its work, at since_s */
    double since_s, factor; /* how many times as long it takes from then on */
    double ends_s;
    int place; /* in the clock */
};

enum lane_state {
    LANE_READY,   /* looks at its instruction */
    LANE_AWAITS,  /* the other lane of its rank */
    LANE_MEETS,   /* has arrived at its collective */
    LANE_BLOCKED, /* waits for a message to come or to be taken */
    LANE_RUNS,
    LANE_FINISHED,
};

/* One queue of one rank. */
struct lane {
    int rank;
    enum lane_state state;
    bool pending, came; /* is to be looked at; what it awaits of the other lane is done */
    struct program_walk walk;
    uint64_t done; /* number of the instruction that it has finished last */
    double begun_s, busy_s;
    double factor;
    struct lane *self; /* the only lane of its own activity */
    struct activity own, *activity;
};

/* The last message of one (sender, receiver, tag). */
struct message {
    int from, to;
    uint32_t tag;
    bool taken, waited; /* waited: the sender knows that it is taken */
    int64_t count;
};

/* A group as all its members know it, and who has arrived at its next collective. */
struct meeting {
    const struct group *group;
    struct lane **lanes;
    int members, arrived; /* of those that are led */
    double longest_s;
    struct activity activity;
};

struct world {
    const struct program *const *programs;
    int ranks;
    struct lane *lanes; /* [rank * QUEUES + queue] */
    int **meetings_of;  /* per rank, per group of its program */
    struct meeting *meetings;
    size_t meeting_count, meeting_capacity;
    struct message *messages;
    size_t message_count, message_capacity;
    struct lane **pending; /* a ring: first come, first looked at */
    int pending_first, pending_count;
    double now_s;
    struct activity **clock; /* a heap by ends_s */
    int clock_count;
    bool *touched; /* per rank: its lanes began or ended something */
    int *touched_ranks, touched_count;
    const struct timing *timing;
    const struct simulation_trace *trace;
    struct error *err;
};

static inline struct lane *world_lane(const struct world *world, int rank, int queue)
{
    return &world->lanes[rank * QUEUES + queue];
}

/* Is the rank led through its step, or does it what another one does? */
static inline bool world_leads(const struct world *world, int rank)
{
    return world->programs[rank]->rank == rank;
}

static inline const struct instruction *lane_instruction(const struct lane *lane)
{
    return lane->walk.cursor.instruction;
}

/* simulate.c: the lane is to be looked at again. */
void world_wake(struct world *world, struct lane *lane);
double world_seconds(const struct world *world, const struct lane *lane);

/* simulate_clock.c: an activity begins now, with so much work; the next one that ends, out of the
 * clock, or NULL; and, once all that can begin has begun, who slows whom. */
void clock_begin(struct world *world, struct activity *activity, struct lane **lanes, int count,
                 double seconds);
struct activity *clock_end(struct world *world);
void clock_adjust(struct world *world);

/* simulate_meet.c: 1 the lane is through with its instruction, 0 it waits or runs, or an error. */
void meet_prepare(struct world *world);
int meet_collective(struct world *world, struct lane *lane);
int meet_send(struct world *world, struct lane *lane);
int meet_receive(struct world *world, struct lane *lane);
int meet_wait(struct world *world, struct lane *lane);
/* The message that the lane received has come. */
void meet_received(struct world *world, const struct lane *lane);
/* Who waits for whom: -EDEADLK with all of them. */
int meet_deadlock(const struct world *world);

#endif
