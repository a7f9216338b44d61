/* pace.c - windows per rank, compared with the median of all ranks. */
#include "coordinator/pace/pace.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

void pace_finish(struct pace *pace)
{
    free(pace->ranks);
    *pace = (struct pace){0};
}

static struct pace_rank *pace_rank(struct pace *pace, uint32_t epoch, size_t count, size_t rank)
{
    if (pace->epoch != epoch || pace->count != count) {
        pace->ranks = xrealloc(pace->ranks, count * sizeof *pace->ranks);
        memset(pace->ranks, 0, count * sizeof *pace->ranks);
        pace->epoch = epoch;
        pace->count = count;
    }
    return &pace->ranks[rank];
}

static int pace_order(const void *a, const void *b)
{
    const double *first = a, *second = b;
    return *first < *second ? -1 : *first > *second;
}

/* Lower median of the ratios of all ranks' last windows; 0: some rank has none. */
static double pace_lower_median(const struct pace *pace)
{
    double *ratios = xcalloc(pace->count, sizeof *ratios), median = 0;
    bool all = true;
    for (size_t i = 0; i < pace->count; i++) {
        ratios[i] = pace->ranks[i].ratio;
        all = all && ratios[i] > 0;
    }
    qsort(ratios, pace->count, sizeof *ratios, pace_order);
    if (all)
        median = ratios[(pace->count - 1) / 2];
    free(ratios);
    return median;
}

/* Returns true if its window is over; the window's factor is then in the ring. */
static bool pace_close_window(struct pace *pace, struct pace_rank *rank, uint64_t now_ms)
{
    if (now_ms < rank->since_ms + PACE_WINDOW_MS)
        return false;
    rank->ratio = rank->measured_s / rank->predicted_s;
    rank->measured_s = rank->predicted_s = 0;
    rank->since_ms = now_ms;
    double usual = pace_lower_median(pace), factor = usual > 0 ? rank->ratio / usual : 0;
    if (usual > 0)
        rank->factors[rank->windows++ % PACE_HELD] = factor;
    if (usual > 0 && (rank->best == 0 || factor < rank->best))
        rank->best = factor;
    return usual > 0 && rank->windows >= PACE_HELD;
}

static double pace_middle(const struct pace_rank *rank)
{
    double factors[PACE_HELD];
    memcpy(factors, rank->factors, sizeof factors);
    qsort(factors, PACE_HELD, sizeof *factors, pace_order);
    return factors[PACE_HELD / 2];
}

/* Whether it holds in enough windows of the ring. */
static bool pace_held(const struct pace_rank *rank, bool slow)
{
    size_t agree = 0;
    for (size_t i = 0; i < PACE_HELD; i++)
        agree += slow ? rank->factors[i] >= PACE_SLOW : rank->factors[i] <= PACE_USUAL;
    return agree >= PACE_AGREE;
}

enum pace_news pace_hear(struct pace *pace, uint32_t epoch, size_t count, size_t rank,
                         double measured_s, double predicted_s, uint64_t now_ms,
                         struct pace_found *found)
{
    struct pace_rank *of = pace_rank(pace, epoch, count, rank);
    if (!(measured_s > 0) || !(predicted_s > 0))
        return PACE_NOTHING;
    if (of->since_ms == 0)
        of->since_ms = now_ms;
    of->measured_s += measured_s;
    of->predicted_s += predicted_s;
    if (!pace_close_window(pace, of, now_ms) || !pace_held(of, !of->slow))
        return PACE_NOTHING;
    of->slow = !of->slow;
    double factor = pace_middle(of);
    *found = (struct pace_found){factor, factor >= PACE_SLOW * of->best};
    return of->slow ? PACE_HAS_SLOWED : PACE_HAS_RECOVERED;
}

void pace_begin(struct pace *pace, uint32_t epoch, size_t count, size_t rank)
{
    pace_rank(pace, epoch, count, rank)->slow = true;
}
