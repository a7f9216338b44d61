/* host_links.c - all-reduces of two sizes by two ranks at a time. */
#include "worker/probe/host_links.h"

#include "common/base/memory.h"
#include "worker/probe/internal.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_ELEMENTS 16
#define SMALL_ROUNDS 12
/* So much that it takes a while, or this much. */
#define LARGE_ELEMENTS_MIN ((size_t)1 << 16)
#define LARGE_ELEMENTS ((size_t)1 << 20)
/* Where no host copies it: 64 MiB take 54 ms at 10 Gbit/s, and 1.3 ms at 400, some thirty times
 * what a call takes by itself. As f32 every number of elements up to here is exact. */
#define LARGE_ELEMENTS_DEVICE ((size_t)1 << 24)
#define ROOM_SHARE 4 /* of the device's memory that is free, no more than one part in so many */
#define LARGE_ENOUGH_S 0.05
#define LARGE_ROUNDS 8 /* at most, */
#define LARGE_S 0.2    /* and about so long */

/* Where the data of one rank lies. */
struct scratch {
    const struct links *links;
    const struct accelerator *accelerator; /* NULL: the data is the host's */
    struct lane *lane;
    void *data;
    size_t elements;
};

/* ---- scratch ---- */

/* A library whose calls return before they are done moves the device's data itself; others have it
 * copied to the host first. */
static size_t most_elements(const struct links *links)
{
    return links->device && links->library->check ? LARGE_ELEMENTS_DEVICE : LARGE_ELEMENTS;
}

static int reserve(struct scratch *scratch, struct error *err)
{
    uint64_t bytes = 0;
    size_t most = most_elements(scratch->links);
    int rc = scratch->accelerator->lane_open(&scratch->lane, false, err);
    if (rc == 0)
        rc = scratch->accelerator->room(&bytes, err);
    if (rc < 0)
        return rc;
    size_t elements = (size_t)(bytes / ROOM_SHARE / sizeof(float));
    elements = elements < LARGE_ELEMENTS_MIN ? LARGE_ELEMENTS_MIN : elements;
    scratch->elements = elements < most ? elements : most;
    rc = scratch->accelerator->reserve(scratch->elements * sizeof(float), &scratch->data, err);
    if (rc < 0)
        return rc;
    scratch->accelerator->enter(scratch->lane);
    scratch->links->device->clear(scratch->data, scratch->elements * sizeof(float));
    return 0;
}

static int scratch_open(struct scratch *scratch, const struct links *links, struct error *err)
{
    *scratch = (struct scratch){.links = links,
                                .accelerator = links->device ? links->device->accelerator : NULL};
    if (scratch->accelerator)
        return reserve(scratch, err);
    scratch->elements = most_elements(links);
    scratch->data = xcalloc(scratch->elements, sizeof(float));
    return 0;
}

static void scratch_close(struct scratch *scratch)
{
    if (!scratch->accelerator) {
        free(scratch->data);
        return;
    }
    scratch->accelerator->enter(NULL);
    scratch->accelerator->lane_close(scratch->lane);
    scratch->accelerator->release(scratch->data);
}

/* ---- exchanges ---- */

/* Until the data is there. */
static int exchange(const struct scratch *scratch, struct fabric_group *group, size_t count,
                    enum reduction reduction, struct error *err)
{
    const struct links *links = scratch->links;
    int rc = links->library->all_reduce(group, ELEMENT_F32, scratch->data, count, reduction, err);
    return rc == 0 && scratch->accelerator ? scratch->accelerator->finish(err) : rc;
}

/* What has come through. */
static int check(const struct links *links, struct error *err)
{
    return links->library->check ? links->library->check(links->fabric, err) : 0;
}

/* Of what both ranks have the greater. */
static int take_greater(const struct scratch *scratch, struct fabric_group *group, float *value,
                        struct error *err)
{
    const struct accelerator *accelerator = scratch->accelerator;
    if (accelerator)
        accelerator->upload(scratch->data, value, sizeof *value);
    else
        *(float *)scratch->data = *value;
    int rc = exchange(scratch, group, 1, REDUCTION_MAX, err);
    if (rc == 0)
        rc = check(scratch->links, err);
    if (rc < 0)
        return rc;
    if (!accelerator) {
        *value = *(const float *)scratch->data;
        return 0;
    }
    accelerator->download(value, scratch->data, sizeof *value);
    return accelerator->finish(err);
}

/* The best of some rounds: others disturb, nothing helps. */
static int time_rounds(const struct scratch *scratch, struct fabric_group *group, size_t count,
                       int rounds, double *best, struct error *err)
{
    int rc = 0;
    for (int round = 0; round < rounds && rc == 0; round++) {
        double begin = probe_now();
        rc = exchange(scratch, group, count, REDUCTION_SUM, err);
        *best = fmin(*best, probe_now() - begin);
        if (rc == 0)
            rc = check(scratch->links, err);
    }
    return rc;
}

/* A round of each size, from the least on, until one takes long enough for both of them, or is as
 * much as the one with less room has; *both_s is the longer of what it took them. */
static int find_size(const struct scratch *scratch, struct fabric_group *group, size_t *count,
                     double *much, double *both_s, struct error *err)
{
    float less = -(float)scratch->elements;
    int rc = take_greater(scratch, group, &less, err);
    size_t most = (size_t)-less;
    for (*count = LARGE_ELEMENTS_MIN; rc == 0;) {
        *much = INFINITY;
        rc = time_rounds(scratch, group, *count, 1, much, err);
        float longer = (float)*much;
        if (rc == 0)
            rc = take_greater(scratch, group, &longer, err);
        *both_s = (double)longer;
        if (*both_s > LARGE_ENOUGH_S || *count >= most)
            break;
        *count = *count * 4 < most ? *count * 4 : most;
    }
    return rc;
}

static int time_large(const struct scratch *scratch, struct fabric_group *group, size_t *count,
                      double *much, struct error *err)
{
    double both_s = 0;
    int rc = find_size(scratch, group, count, much, &both_s, err);
    if (rc < 0)
        return rc;
    double rounds = both_s > 0 ? LARGE_S / both_s : LARGE_ROUNDS;
    return time_rounds(scratch, group, *count, rounds < LARGE_ROUNDS ? (int)rounds : LARGE_ROUNDS,
                       much, err);
}

/* ---- pairs ---- */

static int measure(const struct scratch *scratch, int peer, struct error *err)
{
    const struct links *links = scratch->links;
    bool first = links->rank < peer;
    int ranks[2] = {first ? links->rank : peer, first ? peer : links->rank};
    struct fabric_group *group;
    struct profile_link link;
    double little = INFINITY, much = INFINITY;
    size_t count = 0;
    int rc = links->library->group(links->fabric, ranks, 2, &group, err);
    if (rc == 0)
        rc = time_rounds(scratch, group, SMALL_ELEMENTS, SMALL_ROUNDS, &little, err);
    if (rc == 0)
        rc = time_large(scratch, group, &count, &much, err);
    if (rc < 0 || !first)
        return rc;
    probe_fill_link(&link, 2, (double)(count * sizeof(float)), little, much);
    links->told_cb(links->data, links->rank, peer, links->device != NULL, &link);
    return 0;
}

int links_measure(const struct links *links, struct error *err)
{
    struct scratch scratch;
    int own = 0;
    while (own < links->count && links->ranks[own] != links->rank)
        own++;
    if (own == links->count)
        return 0;
    int rc = scratch_open(&scratch, links, err);
    for (int half = 0; half < 2 && rc == 0; half++) {
        int other = own % 2 == half ? own + 1 : own - 1;
        if (other >= 0 && other < links->count)
            rc = measure(&scratch, links->ranks[other], err);
    }
    scratch_close(&scratch);
    return rc < 0 ? error_prefix(err, rc, "measure what is between hosts") : 0;
}
