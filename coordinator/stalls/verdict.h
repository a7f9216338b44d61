/* verdict.h - of ranks that wait for each other, the one that all wait for in the end.
 *
 * A rank that exchanges data waits for one other, that one perhaps for a third: whoever follows
 * this way from any of them comes to one that waits for nobody, and holds up the rest; or goes in a
 * circle, and then the one of it that most ranks wait for does: it has come, but its network is
 * gone. One that moves on holds up nobody, however slow it is, and one of which nothing is known is
 * not judged. Pure. */
#ifndef COORDINATOR_STALLS_VERDICT_H
#define COORDINATOR_STALLS_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STALL_CALL_SIZE 64
#define STALL_PAST_MAX 16
#define STALL_WORDS_SIZE 320

/* Where a rank is. */
struct stall_position {
    bool known;  /* else it moves on, or was not heard of */
    bool inside; /* the call; else behind it */
    bool exchanges;
    uint64_t group, number; /* of the exchange: the same on all its ranks */
    uint64_t step;
    int awaits; /* rank; -1: none */
    char call[STALL_CALL_SIZE];
    uint64_t held_ms;
    bool stopped; /* its process is */
    uint64_t stopped_ms;
    struct {
        uint64_t group, number;
    } past[STALL_PAST_MAX]; /* exchanges that it has begun */
    size_t past_count;
};

enum stall_kind {
    STALL_NONE,
    STALL_STOPPED, /* its process is */
    STALL_ABSENT,  /* it has not come to what the others wait in */
    STALL_CUT_OFF, /* it has come, and nothing of it arrives */
};

struct stall_verdict {
    enum stall_kind kind;
    size_t rank;    /* that holds up the others */
    size_t waiting; /* how many */
    bool ends;      /* its executor is of no use any more: it is stopped, or stuck in a call */
    uint64_t held_ms;
    uint64_t step, number;        /* of the call that the others are in; of its own where none is */
    char call[STALL_CALL_SIZE];   /* that one */
    char words[STALL_WORDS_SIZE]; /* "holds up 3 ranks: ..." */
};

/* Whether some rank has held up the job for limit_ms. While `begins` no rank has to be anywhere,
 * and only one whose process is stopped is to blame. */
bool stall_judge(const struct stall_position *ranks, size_t count, uint64_t limit_ms, bool begins,
                 struct stall_verdict *out);

/* "Stopped", "Absent", "CutOff". */
const char *stall_kind_name(enum stall_kind kind);

#endif
