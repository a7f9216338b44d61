/* trail.h - how far a rank is in its program, in memory that its worker reads without asking it.
 *
 * Each queue has a lane: a ring of the calls that it has begun last, the newest perhaps not yet
 * ended. The executor writes, and its worker reads whatever state the executor is in: computing,
 * waiting for others, stopped. Times are milliseconds of CLOCK_MONOTONIC.
 *
 * A call that exchanges data is told by its group and its number there, which count alike on all
 * members: so it shows who has come to a call, and who has not. */
#ifndef WORKER_TRAIL_TRAIL_H
#define WORKER_TRAIL_TRAIL_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAIL_LANES 2
#define TRAIL_NAME_SIZE 64
/* Exchanges that are told with the newest call, of all lanes. */
#define TRAIL_PAST_MAX 16

struct trail;

enum trail_kind {
    TRAIL_COMPUTES,  /* or loads: it depends on nobody */
    TRAIL_EXCHANGES, /* with other ranks */
    TRAIL_AWAITS,    /* the rank's other lane */
};

struct trail_call {
    enum trail_kind kind;
    uint64_t group;  /* of an exchange: the members; for a message the two ends and its tag */
    uint64_t number; /* of the calls on it, from 1 */
    uint64_t step;   /* counted from 0 */
    uint64_t entered_ms;
    char name[TRAIL_NAME_SIZE]; /* for people: "all_reduce of {0,1}" */
};

/* An exchange that was begun, perhaps ended. */
struct trail_past {
    uint64_t group, number;
};

/* Where a rank is. */
struct trail_position {
    bool inside;            /* a call; else between two of them, since call.entered_ms */
    struct trail_call call; /* the newest of the lane that the rank waits for */
    int peer;               /* whom it waits for in there; -1: nobody */
    struct trail_past past[TRAIL_PAST_MAX];
    size_t past_count;
};

/* New memory, and the descriptor to hand on, yours: -1 on failure, with -errno. */
int trail_create(struct trail **out, int *fd, struct error *err);
/* The other side's; the descriptor may be closed then. */
int trail_open(int fd, struct trail **out, struct error *err);
/* Accepts NULL. */
void trail_close(struct trail *trail);

/* By the thread of the lane: it enters a call, and leaves it. Harmless without a trail. */
void trail_enter(struct trail *trail, unsigned lane, const struct trail_call *call);
void trail_leave(struct trail *trail, unsigned lane, uint64_t now_ms);
/* Inside a call, by the same thread: it waits for this rank; -1: no longer. */
void trail_await(int peer);

/* From any process; false while no call was entered. */
bool trail_read(const struct trail *trail, struct trail_position *out);

#endif
