/* stalls.h - who waits for whom among the ranks of a job, and who is to blame if nobody moves on.
 *
 * Workers repeatedly report ranks that have been in one place for a while; a rank that is not
 * reported is moving on.
 *
 * A rank that exchanges data waits for one other rank, which may wait for a third. Following this
 * chain from any rank leads either to a rank that waits for nobody and holds up the rest, or into a
 * cycle. In a cycle the rank that most others wait for is to blame: it has arrived, but its network
 * is gone. A rank that moves on holds up nobody, however slow it is, and a rank of which nothing is
 * known is not judged.
 *
 * Pure; times are milliseconds of the caller's clock. */
#ifndef COORDINATOR_STALLS_STALLS_H
#define COORDINATOR_STALLS_STALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STALL_CALL_SIZE 64
#define STALL_PAST_MAX 24
#define STALL_WORDS_SIZE 320

/* Where a rank is. */
struct stall_position {
    bool known;  /* false: it moves on, or was not heard of */
    bool inside; /* in the call; otherwise after it */
    bool exchanges;
    uint64_t group, number; /* identify the exchange: equal on all its ranks */
    uint64_t step;
    int awaits; /* rank it waits for; -1: none */
    char call[STALL_CALL_SIZE];
    uint64_t held_ms;
    bool stopped; /* its process is stopped */
    uint64_t stopped_ms;
    struct {
        uint64_t group, number;
    } past[STALL_PAST_MAX]; /* exchanges that it has begun */
    size_t past_count;
};

enum stall_kind {
    STALL_NONE,
    STALL_STOPPED, /* its process is stopped */
    STALL_ABSENT,  /* it has not arrived at what the others wait in */
    STALL_CUT_OFF, /* it has arrived, and nothing comes from it */
};

struct stall_verdict {
    enum stall_kind kind;
    size_t rank;    /* the rank that holds up the others */
    size_t waiting; /* how many it holds up */
    bool ends;      /* its executor is useless: it is stopped, or stuck in a call */
    uint64_t held_ms;
    uint64_t step, number;        /* of the call that the others are in, or else of its own */
    char call[STALL_CALL_SIZE];   /* the name of that call */
    char words[STALL_WORDS_SIZE]; /* "holds up 3 ranks: ..." */
};

/* Whether some rank has held up the job for limit_ms. While the job `begins`, no rank has to be in
 * any particular place, and only a stopped process can be blamed. */
bool stall_judge(const struct stall_position *ranks, size_t count, uint64_t limit_ms, bool begins,
                 struct stall_verdict *out);

/* "Stopped", "Absent", "CutOff". */
const char *stall_kind_name(enum stall_kind kind);

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
