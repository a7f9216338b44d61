/* bench.c - the clock, median, feed and optimizer of the suites that train. */
#include "bench/bench.h"

#include "common/base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

void bench_need(int rc, const struct error *err)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    const struct bench_tokens *tokens = context;
    (void)kind;
    for (int64_t sample = box->low[0]; sample < box->high[0]; sample++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            *out++ = (int32_t)random_below(1, tensor->targets,
                                           (first + (uint64_t)sample) * 4096 + (uint64_t)place,
                                           (uint64_t)tokens->vocab);
}

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    const struct bench_tokens *tokens = context;
    (void)kind;
    (void)first;
    return (double)(samples * (uint64_t)tokens->seq);
}

struct feed bench_feed_of(const struct bench_tokens *tokens)
{
    return (struct feed){tokens, fill, count_targets};
}

static const struct bench_tokens usual = {BENCH_SEQ, BENCH_VOCAB};
const struct feed bench_feed = {&usual, fill, count_targets};

const struct optimizer bench_optimizer = {.rate = 1e-3,
                                          .steps = 1000,
                                          .beta1 = 0.9,
                                          .beta2 = 0.95,
                                          .epsilon = 1e-8,
                                          .decay = 0.1,
                                          .clip = 1};
