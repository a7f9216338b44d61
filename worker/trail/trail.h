/* trail.h - how far a rank is in its program, in memory that its worker reads without asking it.
 *
 * Each queue has a track, and so have the copies that are made beside a step: a ring of the last
 * calls that it has begun, the newest of which may not have ended. The executor writes it, and its
 * worker reads it in whatever state the executor is: computing, waiting for others, stopped. Times
 * are milliseconds of CLOCK_MONOTONIC.
 *
 * An exchange of data is identified by its group and its number in that group, which are counted in
 * the same way by all members. So it shows who has come to a call and who has not. */
#ifndef WORKER_TRAIL_TRAIL_H
#define WORKER_TRAIL_TRAIL_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAIL_TRACKS 3
#define TRAIL_COPIES 2 /* the track of copies; before it are those of the queues */
#define TRAIL_NAME_SIZE 64
/* Exchanges that are reported with the newest call, over all tracks. */
#define TRAIL_PAST_MAX 24

struct trail;

enum trail_kind {
    TRAIL_COMPUTES,  /* computes or loads: it depends on nobody */
    TRAIL_EXCHANGES, /* exchanges data with other ranks */
    TRAIL_AWAITS,    /* waits for another track of the rank */
};

struct trail_call {
    enum trail_kind kind;
    uint64_t group;  /* of an exchange: a hash of its members, or of both ends and the tag */
    uint64_t number; /* of the calls in this group, or of runs of this call; from 1 */
    uint64_t step;   /* counted from 0 */
    uint64_t entered_ms;
    unsigned awaited; /* the track that TRAIL_AWAITS waits for */
    /* The index of its instruction in the rank's program, and how many that has; 0: in none. */
    uint32_t instruction, instructions;
    char name[TRAIL_NAME_SIZE]; /* for people, such as "all_reduce of {0,1}" */
};

/* An exchange that has begun, and may have ended. */
struct trail_past {
    uint64_t group, number;
};

/* Where a rank is. */
struct trail_position {
    bool inside;            /* the call; otherwise between two calls, since call.entered_ms */
    struct trail_call call; /* the newest call of the track that holds up the rank */
    int peer;               /* the rank that it waits for; -1: nobody */
    struct trail_past past[TRAIL_PAST_MAX];
    size_t past_count;
};

/* Create the memory, and a descriptor to pass on, which the caller closes. -errno. */
int trail_create(struct trail **out, int *fd, struct error *err);
/* Map the memory in another process; the descriptor may be closed afterwards. -EINVAL: it is not a
 * trail of this release; otherwise -errno. */
int trail_open(int fd, struct trail **out, struct error *err);
/* Accepts NULL. */
void trail_close(struct trail *trail);

/* Called by the track's thread: it enters a call (copied), and leaves it. Does nothing if trail is
 * NULL. */
void trail_enter(struct trail *trail, unsigned track, const struct trail_call *call);
void trail_leave(struct trail *trail, unsigned track, uint64_t now_ms);
/* Called by the same thread inside of a call: it waits for this rank; -1: not any longer. */
void trail_await(int peer);

/* Read the position, from any process; the name is UTF-8 in any case. Returns false if no call was
 * entered yet, or the rank moves too fast to be read. */
bool trail_read(const struct trail *trail, struct trail_position *out);

#endif
