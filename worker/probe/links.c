/* links.c - all-reduces of two sizes, by two ranks at a time. */
#include "worker/probe/links.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "worker/probe/fit.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_ELEMENTS 16
#define SMALL_ROUNDS 12
/* The large size grows between these until an exchange takes LARGE_ENOUGH_S. */
#define LARGE_ELEMENTS_MIN ((size_t)1 << 16)
#define LARGE_ELEMENTS ((size_t)1 << 20)
/* The limit for data that is not copied through host memory: 64 MiB take 54 ms at 10 Gbit/s, and
 * 1.3 ms at 400, some thirty times as long as a call takes by itself. Every number of elements up
 * to here is exact in f32, in which find_size() exchanges them. */
#define LARGE_ELEMENTS_DEVICE ((size_t)1 << 24)
#define ROOM_SHARE 4 /* at most one part in this many of the device's free memory is used */
#define LARGE_ENOUGH_S 0.05
#define LARGE_ROUNDS 8 /* at most, */
#define LARGE_S 0.2    /* and about so long */

/* The data of one rank. */
struct scratch {
    const struct links *links;
    struct links_exchange exchange;
    struct device_stream *lane;
    size_t elements;
};

/* ---- scratch ---- */

/* A library with asynchronous calls (it has check()) moves data of the device itself; for others
 * the data is copied to the host first. */
static size_t scratch_most(const struct links *links)
{
    return links->device && links->library->check ? LARGE_ELEMENTS_DEVICE : LARGE_ELEMENTS;
}

static int scratch_reserve(struct scratch *scratch, struct error *err)
{
    uint64_t bytes = 0;
    size_t most = scratch_most(scratch->links);
    int rc = scratch->exchange.accelerator->stream_open(&scratch->lane, false, err);
    if (rc == 0)
        rc = scratch->exchange.accelerator->free_bytes(&bytes, err);
    if (rc < 0)
        return rc;
    size_t elements = (size_t)(bytes / ROOM_SHARE / sizeof(float));
    elements = elements < LARGE_ELEMENTS_MIN ? LARGE_ELEMENTS_MIN : elements;
    scratch->elements = elements < most ? elements : most;
    rc = scratch->exchange.accelerator->reserve(scratch->elements * sizeof(float),
                                                &scratch->exchange.data, err);
    if (rc < 0)
        return rc;
    scratch->exchange.accelerator->enter(scratch->lane);
    scratch->links->device->clear(scratch->exchange.data, scratch->elements * sizeof(float));
    return 0;
}

static int scratch_open(struct scratch *scratch, const struct links *links, struct error *err)
{
    *scratch = (struct scratch){
        .links = links,
        .exchange = {.library = links->library,
                     .fabric = links->fabric,
                     .accelerator = links->device ? links->device->accelerator : NULL}};
    if (scratch->exchange.accelerator)
        return scratch_reserve(scratch, err);
    scratch->elements = scratch_most(links);
    scratch->exchange.data = xcalloc(scratch->elements, sizeof(float));
    return 0;
}

static void scratch_close(struct scratch *scratch)
{
    if (!scratch->exchange.accelerator) {
        free(scratch->exchange.data);
        return;
    }
    scratch->exchange.accelerator->enter(NULL);
    scratch->exchange.accelerator->stream_close(scratch->lane);
    scratch->exchange.accelerator->release(scratch->exchange.data);
}

/* ---- exchanges ---- */

/* All-reduce, and wait for the data. */
static int exchange_run(const struct links_exchange *exchange, size_t count,
                        enum reduction reduction, struct error *err)
{
    int rc = exchange->library->all_reduce(exchange->group, ELEMENT_F32, exchange->data, count,
                                           reduction, err);
    return rc == 0 && exchange->accelerator ? exchange->accelerator->finish(err) : rc;
}

/* Whether what was exchanged is valid. */
static int exchange_check(const struct links_exchange *exchange, struct error *err)
{
    return exchange->library->check ? exchange->library->check(exchange->fabric, err) : 0;
}

int links_time(const struct links_exchange *exchange, size_t count, int rounds, double *best,
               struct error *err)
{
    int rc = 0;
    for (int round = 0; round < rounds && rc == 0; round++) {
        double begin = clock_s();
        rc = exchange_run(exchange, count, REDUCTION_SUM, err);
        *best = fmin(*best, clock_s() - begin);
        if (rc == 0)
            rc = exchange_check(exchange, err);
    }
    return rc;
}

/* Replace *value by the greater one of both ranks. */
static int take_greater(const struct links_exchange *exchange, float *value, struct error *err)
{
    const struct accelerator *accelerator = exchange->accelerator;
    if (accelerator)
        accelerator->upload(exchange->data, value, sizeof *value);
    else
        *(float *)exchange->data = *value;
    int rc = exchange_run(exchange, 1, REDUCTION_MAX, err);
    if (rc == 0)
        rc = exchange_check(exchange, err);
    if (rc < 0)
        return rc;
    if (!accelerator) {
        *value = *(const float *)exchange->data;
        return 0;
    }
    accelerator->download(value, exchange->data, sizeof *value);
    return accelerator->finish(err);
}

/* Time one round of each size, from the least on, until one takes longer than LARGE_ENOUGH_S on one
 * rank, or fills the scratch of the rank with less. Both ranks find the same size. *much is this
 * rank's time, *both_s the longer of both ranks' times. */
static int find_size(const struct scratch *scratch, size_t *count, double *much, double *both_s,
                     struct error *err)
{
    float less = -(float)scratch->elements;
    int rc = take_greater(&scratch->exchange, &less, err);
    size_t most = (size_t)-less;
    for (*count = LARGE_ELEMENTS_MIN; rc == 0;) {
        *much = INFINITY;
        rc = links_time(&scratch->exchange, *count, 1, much, err);
        float longer = (float)*much;
        if (rc == 0)
            rc = take_greater(&scratch->exchange, &longer, err);
        *both_s = (double)longer;
        if (*both_s > LARGE_ENOUGH_S || *count >= most)
            break;
        *count = *count * 4 < most ? *count * 4 : most;
    }
    return rc;
}

static int time_large(const struct scratch *scratch, size_t *count, double *much, struct error *err)
{
    double both_s = 0;
    int rc = find_size(scratch, count, much, &both_s, err);
    if (rc < 0)
        return rc;
    double rounds = both_s > 0 ? LARGE_S / both_s : LARGE_ROUNDS;
    return links_time(&scratch->exchange, *count,
                      rounds < LARGE_ROUNDS ? (int)rounds : LARGE_ROUNDS, much, err);
}

/* ---- pairs ---- */

static int measure_pair(struct scratch *scratch, int peer, struct error *err)
{
    const struct links *links = scratch->links;
    bool first = links->rank < peer;
    int ranks[2] = {first ? links->rank : peer, first ? peer : links->rank};
    double little = INFINITY, much = INFINITY;
    size_t count = 0;
    int rc = links->library->group(links->fabric, ranks, 2, &scratch->exchange.group, err);
    if (rc == 0)
        rc = links_time(&scratch->exchange, SMALL_ELEMENTS, SMALL_ROUNDS, &little, err);
    if (rc == 0)
        rc = time_large(scratch, &count, &much, err);
    if (rc < 0 || !first)
        return rc;
    const struct hardware_link link = fit_link(2, (double)(count * sizeof(float)), little, much);
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
            rc = measure_pair(&scratch, links->ranks[other], err);
    }
    /* A release may wait for the device, where an exchange of another rank waits for this one. */
    if (rc < 0)
        links->library->abort(links->fabric);
    scratch_close(&scratch);
    return rc < 0 ? error_prefix(err, rc, "measure what is between hosts") : 0;
}
