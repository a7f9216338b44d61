/* stalls.h - what is known of the positions of a job's ranks, and what was reported of it.
 *
 * Workers repeatedly report ranks that have been in one place for a while; a rank that is not
 * reported is moving on. Pure; times are milliseconds of the caller's clock. */
#ifndef COORDINATOR_STALLS_STALLS_H
#define COORDINATOR_STALLS_STALLS_H

#include "coordinator/stalls/verdict.h"

/* Initialize to zero. */
struct stalls {
    uint32_t epoch;
    struct stall_position *ranks;
    uint64_t *heard_ms;
    size_t count;
    struct stall_verdict told; /* the newest verdict of this epoch */
};

void stalls_finish(struct stalls *stalls);

/* A rank, of `count` in this epoch, is at this position; NULL: it moves on. */
void stalls_hear(struct stalls *stalls, uint32_t epoch, size_t count, size_t rank,
                 const struct stall_position *position, uint64_t now_ms);

struct stall_limits {
    uint64_t held_ms;  /* this long in one place is a stall */
    uint64_t fresh_ms; /* reports older than this are void */
};

/* Returns true and a verdict if there is one that has not been told in this epoch; it then counts
 * as told. `begins` as for stall_judge(). */
bool stalls_judge(struct stalls *stalls, const struct stall_limits *limits, bool begins,
                  uint64_t now_ms, struct stall_verdict *out);

#endif
