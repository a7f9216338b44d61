/* pace.h - which rank of a job computes slower than was predicted of it, and than the others do.
 *
 * A rank tells what its kernels took and what they were predicted to take: the same instructions.
 * That ratio is compared with the one of the other ranks, the lower median of all, so that a
 * profile that is off by the same factor everywhere accuses nobody. A rank is slow when it has
 * been so in all but one of its newest windows, and no longer slow when in as many it has been
 * close to the others: one noisy window puts no news off. With one rank there is nobody to compare
 * with. Pure; times are milliseconds of the caller's clock. */
#ifndef COORDINATOR_PACE_PACE_H
#define COORDINATOR_PACE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_WINDOW_MS 3000
#define PACE_HELD 5     /* the newest windows */
#define PACE_AGREE 4    /* of them, at least */
#define PACE_SLOW 1.3   /* times the others' ratio, at least */
#define PACE_USUAL 1.15 /* at most, to be no longer slow */

struct pace_rank {
    double measured_s, predicted_s; /* in the window at hand */
    uint64_t since_ms;              /* it began; 0: nothing was heard */
    double ratio;                   /* of the last window; 0: there was none */
    double factors[PACE_HELD];      /* of the newest windows, a ring */
    uint64_t windows;
    double best; /* the lowest factor of the epoch; 0: none */
    bool slow;
};

/* Zeroed to begin with. */
struct pace {
    uint32_t epoch;
    struct pace_rank *ranks;
    size_t count;
};

void pace_finish(struct pace *pace);

struct pace_found {
    double factor; /* how many times as slow as the others it is */
    bool
        drifted; /* it was better once in this epoch; else it may be the prediction that is wrong */
};

enum pace_news { PACE_NOTHING, PACE_HAS_SLOWED, PACE_HAS_RECOVERED };

/* A rank of `count` in this epoch has computed for measured_s what was predicted to take
 * predicted_s. *found is filled in where there is news. */
enum pace_news pace_hear(struct pace *pace, uint32_t epoch, size_t count, size_t rank,
                         double measured_s, double predicted_s, uint64_t now_ms,
                         struct pace_found *found);
/* The rank is known to be slow: from an epoch before. */
void pace_begin(struct pace *pace, uint32_t epoch, size_t count, size_t rank);

#endif
