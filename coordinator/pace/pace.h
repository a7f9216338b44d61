/* pace.h - finds ranks that compute more slowly than predicted, and than the other ranks do.
 *
 * A rank reports what its kernels took and what the same instructions were predicted to take. This
 * ratio is compared with the lower median over all ranks, so a profile that is off by the same
 * factor everywhere accuses nobody. A rank becomes slow when it was slow in all but one of its
 * newest windows, and recovers when it was close to the others in as many: a single noisy window
 * delays no news. With one rank there is nobody to compare with. Pure; times are milliseconds of
 * the caller's clock. */
#ifndef COORDINATOR_PACE_PACE_H
#define COORDINATOR_PACE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_WINDOW_MS 3000
#define PACE_HELD 5     /* number of newest windows kept */
#define PACE_AGREE 4    /* of which at least this many must agree */
#define PACE_SLOW 1.3   /* least ratio to the others' that is slow */
#define PACE_USUAL 1.15 /* greatest ratio at which it is no longer slow */

struct pace_rank {
    double measured_s, predicted_s; /* in the current window */
    uint64_t since_ms;              /* when the window began; 0: nothing was heard yet */
    double ratio;                   /* of the last window; 0: none */
    double factors[PACE_HELD];      /* ring of the newest windows */
    uint64_t windows;
    double best; /* the lowest factor of the epoch; 0: none */
    bool slow;
};

/* Initialize to zero. */
struct pace {
    uint32_t epoch;
    struct pace_rank *ranks;
    size_t count;
};

void pace_finish(struct pace *pace);

struct pace_found {
    double factor; /* how many times slower than the others it is */
    bool drifted;  /* it was better earlier in this epoch; otherwise the prediction may be wrong */
};

enum pace_news { PACE_NOTHING, PACE_HAS_SLOWED, PACE_HAS_RECOVERED };

/* A rank, of `count` in this epoch, has computed for measured_s what was predicted to take
 * predicted_s. *found is filled in if there is news. */
enum pace_news pace_hear(struct pace *pace, uint32_t epoch, size_t count, size_t rank,
                         double measured_s, double predicted_s, uint64_t now_ms,
                         struct pace_found *found);
/* The rank is known to be slow from an earlier epoch. */
void pace_begin(struct pace *pace, uint32_t epoch, size_t count, size_t rank);

#endif
