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
#define LARGE_ENOUGH_S 0.05
#define LARGE_ROUNDS 8 /* at most, */
#define LARGE_S 0.2    /* and about so long */

/* The best of some rounds: others disturb, nothing helps. */
static int time_rounds(const struct links *links, struct fabric_group *group, float *data,
                       size_t count, int rounds, double *best, struct error *err)
{
    int rc = 0;
    for (int round = 0; round < rounds && rc == 0; round++) {
        double begin = probe_now();
        rc = links->library->all_reduce(group, ELEMENT_F32, data, count, REDUCTION_SUM, err);
        *best = fmin(*best, probe_now() - begin);
    }
    return rc;
}

/* A round of each size, from the least on, until one takes long enough for both of them; *both_s is
 * the longer of what it took them. */
static int find_size(const struct links *links, struct fabric_group *group, float *data,
                     size_t *count, double *much, double *both_s, struct error *err)
{
    int rc = 0;
    for (*count = LARGE_ELEMENTS_MIN; rc == 0; *count *= 4) {
        *much = INFINITY;
        rc = time_rounds(links, group, data, *count, 1, much, err);
        float longer = (float)*much;
        if (rc == 0)
            rc = links->library->all_reduce(group, ELEMENT_F32, &longer, 1, REDUCTION_MAX, err);
        *both_s = (double)longer;
        if (*both_s > LARGE_ENOUGH_S || *count >= LARGE_ELEMENTS)
            break;
    }
    return rc;
}

static int time_large(const struct links *links, struct fabric_group *group, float *data,
                      size_t *count, double *much, struct error *err)
{
    double both_s = 0;
    int rc = find_size(links, group, data, count, much, &both_s, err);
    if (rc < 0)
        return rc;
    double rounds = both_s > 0 ? LARGE_S / both_s : LARGE_ROUNDS;
    return time_rounds(links, group, data, *count,
                       rounds < LARGE_ROUNDS ? (int)rounds : LARGE_ROUNDS, much, err);
}

static int measure(const struct links *links, int peer, struct error *err)
{
    bool first = links->rank < peer;
    int ranks[2] = {first ? links->rank : peer, first ? peer : links->rank};
    struct fabric_group *group;
    struct profile_link link;
    double little = INFINITY, much = INFINITY;
    size_t count = 0;
    int rc = links->library->group(links->fabric, ranks, 2, &group, err);
    if (rc < 0)
        return rc;
    float *data = xcalloc(LARGE_ELEMENTS, sizeof *data);
    rc = time_rounds(links, group, data, SMALL_ELEMENTS, SMALL_ROUNDS, &little, err);
    if (rc == 0)
        rc = time_large(links, group, data, &count, &much, err);
    free(data);
    if (rc < 0 || !first)
        return rc;
    probe_fill_link(&link, 2, (double)(count * sizeof(float)), little, much);
    links->told_cb(links->data, links->rank, peer, &link);
    return 0;
}

int links_measure(const struct links *links, struct error *err)
{
    int own = 0, rc = 0;
    while (own < links->count && links->ranks[own] != links->rank)
        own++;
    for (int half = 0; half < 2 && own < links->count && rc == 0; half++) {
        int other = own % 2 == half ? own + 1 : own - 1;
        if (other >= 0 && other < links->count)
            rc = measure(links, links->ranks[other], err);
    }
    return rc < 0 ? error_prefix(err, rc, "measure what is between hosts") : 0;
}
