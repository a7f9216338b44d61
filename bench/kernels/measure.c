/* measure.c - repeats the work, at least three times and ENOUGH_S seconds, and keeps the shortest
 * time. */
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

void measure_in_turns(work_fn *work, void *const contexts[], size_t count, double seconds[])
{
    double begin = now();
    for (int round = 0; round < 3 || now() - begin < ENOUGH_S * (double)count; round++)
        for (size_t i = 0; i < count; i++) {
            double from = now();
            work(contexts[i]);
            double took = now() - from;
            seconds[i] = round == 0 || took < seconds[i] ? took : seconds[i];
        }
}

double measure_shortest(work_fn *work, void *context)
{
    double seconds;
    measure_in_turns(work, &context, 1, &seconds);
    return seconds;
}

void measure_print(const char *name, double value, const char *unit)
{
    printf("bench kernels/%s %.1f %s\n", name, value, unit);
    fflush(stdout);
}

void *measure_draw(size_t count, enum element element, uint64_t stream)
{
    void *data = xcalloc(count, element_size(element));
    for (size_t i = 0; i < count; i++) {
        float number = (float)random_uniform(1, stream, i) - 0.5f;
        if (element == ELEMENT_F32)
            ((float *)data)[i] = number;
        else
            ((uint16_t *)data)[i] = bf16_narrow(number);
    }
    return data;
}
