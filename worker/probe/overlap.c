/* overlap.c - computing while data is exchanged: the factor by which each slows the other down.
 *
 * Each is timed alone, then both at once. Together they take as long as the longer one if they do
 * not disturb each other, and as long as both in turn if they share everything. All ranks measure
 * at the same time. */
#include "worker/probe/internal.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define ELEMENTS ((size_t)1 << 16) /* to compute with: they stay in the cache */
#define MOVED ((size_t)1 << 18)
#define MOVES 4
#define ROUNDS 5
#define PATIENCE_S 0.5 /* after this no further round begins: others may need the cores */

struct mover {
    const struct collectives *collectives;
    struct fabric_group *group;
    float *data;
    struct timespec until;
    int rc;
    struct error err;
};

static bool is_late(const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > until->tv_sec ||
           (now.tv_sec == until->tv_sec && now.tv_nsec > until->tv_nsec);
}

static struct timespec in_patience(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(PATIENCE_S * 1e9);
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    return until;
}

static void *move(void *context)
{
    struct mover *mover = context;
    for (int i = 0; i < MOVES && mover->rc == 0; i++)
        mover->rc = mover->collectives->all_reduce(mover->group, ELEMENT_F32, mover->data, MOVED,
                                                   REDUCTION_SUM, &mover->err);
    return NULL;
}

/* Wait for all ranks. False: an error, or time is up for one of them, which ends it for all. */
static bool meet(struct mover *mover)
{
    float late[1] = {is_late(&mover->until) ? 1 : 0};
    if (mover->rc == 0)
        mover->rc = mover->collectives->all_reduce(mover->group, ELEMENT_F32, late, 1,
                                                   REDUCTION_SUM, &mover->err);
    return mover->rc == 0 && !(late[0] > 0);
}

static double time_moves(struct mover *mover)
{
    double begin = probe_now();
    move(mover);
    return probe_now() - begin;
}

static double time_sums(const struct device *device, const float *data, int count)
{
    double begin = probe_now();
    float sum = 0;
    for (int i = 0; i < count; i++)
        device->square_sum(data, ELEMENTS, &sum);
    return probe_now() - begin;
}

static double time_both(struct mover *mover, const struct device *device, const float *data,
                        int count)
{
    pthread_t thread;
    double begin = probe_now();
    bool beside = pthread_create(&thread, NULL, move, mover) == 0;
    if (!beside)
        move(mover);
    time_sums(device, data, count);
    if (beside)
        pthread_join(thread, NULL);
    return probe_now() - begin;
}

int probe_overlap(struct prober *prober, struct fabric_group *group, double *out, struct error *err)
{
    const struct device *device = prober->probe->device;
    struct mover mover = {.collectives = prober->probe->collectives, .group = group};
    mover.until = in_patience();
    float *data = xcalloc(ELEMENTS, sizeof *data);
    double moving = INFINITY, computing = INFINITY, both = INFINITY;
    mover.data = xcalloc(MOVED, sizeof *mover.data);
    for (int i = 0; i < ROUNDS && (meet(&mover) || i == 0); i++)
        moving = fmin(moving, time_moves(&mover));
    /* Compute for about as long as the exchanges take. */
    int count = 1 + (int)fmin(1e6, moving / fmax(1e-7, time_sums(device, data, 10) / 10));
    mover.until = in_patience();
    for (int i = 0; i < ROUNDS && (meet(&mover) || i == 0); i++) {
        computing = fmin(computing, time_sums(device, data, count));
        both = fmin(both, time_both(&mover, device, data, count));
    }
    double shorter = fmin(moving, computing), longer = fmax(moving, computing);
    *out = fmax(1, fmin(PROFILE_OVERLAP_MAX, (both - (longer - shorter)) / shorter));
    free(mover.data);
    free(data);
    return mover.rc < 0 ? error_set(err, mover.rc, "%s", mover.err.text) : 0;
}
