/* stalls.h - what is known of where a job's ranks are, and what was said of it.
 *
 * Workers tell where a rank is that has been there for a while, again and again; one that they
 * tell nothing of moves on. Pure; times are milliseconds of the caller's clock. */
#ifndef COORDINATOR_STALLS_STALLS_H
#define COORDINATOR_STALLS_STALLS_H

#include "coordinator/stalls/verdict.h"

/* Zeroed to begin with. */
struct stalls {
    uint32_t epoch;
    struct stall_position *ranks;
    uint64_t *heard_ms;
    size_t count;
    struct stall_verdict told; /* the newest of this epoch */
};

void stalls_finish(struct stalls *stalls);

/* A rank of `count` in this epoch is at this position; NULL: it moves on. */
void stalls_hear(struct stalls *stalls, uint32_t epoch, size_t count, size_t rank,
                 const struct stall_position *position, uint64_t now_ms);

struct stall_limits {
    uint64_t held_ms;  /* in one place is a stall */
    uint64_t fresh_ms; /* what was heard before that says nothing any more */
};

/* A verdict that was not told in this epoch; it counts as told then. `begins` as stall_judge. */
bool stalls_judge(struct stalls *stalls, const struct stall_limits *limits, bool begins,
                  uint64_t now_ms, struct stall_verdict *out);

#endif
