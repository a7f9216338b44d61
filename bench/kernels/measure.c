/* measure.c - see measure.h. */
#include "bench/kernels/measure.h"

#include "common/base/memory.h"
#include "common/base/random.h"

#include <stdio.h>
#include <time.h>

#define ENOUGH_S 0.3

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

double measure_shortest(work_fn *work, void *context)
{
    double best = 1e9, begin = now();
    for (int round = 0; round < 3 || now() - begin < ENOUGH_S; round++) {
        double from = now();
        work(context);
        double took = now() - from;
        best = took < best ? took : best;
    }
    return best;
}

void measure_print(const char *name, double value, const char *unit)
{
    printf("bench kernels/%s %.1f %s\n", name, value, unit);
    fflush(stdout);
}

float *measure_draw(size_t count, uint64_t stream)
{
    float *data = xcalloc(count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)random_uniform(1, stream, i) - 0.5f;
    return data;
}
