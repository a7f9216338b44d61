/* simulate_internal.h - the internal interface between the files of the simulation; nobody else
 * includes it.
 *
 * simulate.c takes each queue of each rank through its step, simulate_meet.c handles collectives
 * and messages, simulate_clock.c keeps track of what runs and when it ends. Times in seconds, since
 * the step began. */
#ifndef COMMON_PROGRAM_SIMULATE_INTERNAL_H
#define COMMON_PROGRAM_SIMULATE_INTERNAL_H

#include "common/program/program.h"
#include "common/program/simulate.h"

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

/* simulate.c: queue the lane to be looked at again. */
void world_wake(struct world *world, struct lane *lane);
/* How long the lane's instruction takes. */
double world_seconds(const struct world *world, const struct lane *lane);

/* simulate_clock.c */

/* Begin an activity of these lanes now, with this much work. */
void clock_begin(struct world *world, struct activity *activity, struct lane **lanes, int count,
                 double seconds);
/* Advance time to the next end of an activity and remove it; NULL when nothing runs. */
struct activity *clock_end(struct world *world);
/* Update who slows whom. To be called once everything that can begin has begun. */
void clock_adjust(struct world *world);

/* simulate_meet.c */

/* Find the groups of all ranks. */
void meet_prepare(struct world *world);
/* Begin the lane's instruction. Returns 1 when it is done at once, 0 when the lane waits or runs,
 * or a negative errno. */
int meet_collective(struct world *world, struct lane *lane);
int meet_send(struct world *world, struct lane *lane);
int meet_receive(struct world *world, struct lane *lane);
int meet_wait(struct world *world, struct lane *lane);
/* End the lane's receive. */
void meet_received(struct world *world, const struct lane *lane);
/* Returns -EDEADLK, with a text that says which rank waits for which. */
int meet_deadlock(const struct world *world);

#endif
