/* links.c - all-reduces of two sizes by two ranks at a time. */
#include "worker/executor/links.h"

#include "common/base/memory.h"
#include "worker/executor/probe_internal.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_ELEMENTS 16
#define SMALL_ROUNDS 12
#define LARGE_ELEMENTS ((size_t)1 << 20)
#define LARGE_ROUNDS 8 /* at most, */
#define LARGE_S 0.2    /* and about so long: one round may be seconds */

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

/* Both go as many rounds more. */
static int agree_on_rounds(const struct links *links, struct fabric_group *group, double once_s,
                           int *rounds, struct error *err)
{
    float both = (float)once_s;
    int rc = links->library->all_reduce(group, ELEMENT_F32, &both, 1, REDUCTION_MAX, err);
    double most = LARGE_S / (both > 0 ? (double)both : LARGE_S);
    *rounds = most < LARGE_ROUNDS ? (int)most : LARGE_ROUNDS;
    return rc;
}

static int measure(const struct links *links, int peer, struct error *err)
{
    int ranks[2] = {links->rank < peer ? links->rank : peer,
                    links->rank < peer ? peer : links->rank},
        rounds;
    struct fabric_group *group;
    struct profile_link link;
    double little = INFINITY, much = INFINITY;
    int rc = links->library->group(links->fabric, ranks, 2, &group, err);
    if (rc < 0)
        return rc;
    float *data = xcalloc(LARGE_ELEMENTS, sizeof *data);
    rc = time_rounds(links, group, data, SMALL_ELEMENTS, SMALL_ROUNDS, &little, err);
    if (rc == 0)
        rc = time_rounds(links, group, data, LARGE_ELEMENTS, 1, &much, err);
    if (rc == 0)
        rc = agree_on_rounds(links, group, much, &rounds, err);
    if (rc == 0)
        rc = time_rounds(links, group, data, LARGE_ELEMENTS, rounds, &much, err);
    free(data);
    if (rc < 0 || links->rank != ranks[0])
        return rc;
    probe_fill_link(&link, 2, (double)(LARGE_ELEMENTS * sizeof(float)), little, much);
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
