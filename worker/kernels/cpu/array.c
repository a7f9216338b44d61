/* array.c - runs of numbers: clear, add, and the sum of squares. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/plain/plain.h"

#include <string.h>

#define GRAIN 4096 /* elements: less is not worth another thread */
#define PARTS 64   /* of a sum: fixed, so that its bits do not depend on the threads */

struct arrays {
    const float *a, *b;
    float *out;
};

static void clear_range(const void *context, int64_t first, int64_t end)
{
    memset((char *)context + first, 0, (size_t)(end - first));
}

VECTORISED static void add_range(const void *context, int64_t first, int64_t end)
{
    const struct arrays *arrays = context;
    const float *a = arrays->a, *b = arrays->b;
    float *out = arrays->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        out[i] = a[i] + b[i];
}

void cpu_clear(void *data, size_t bytes)
{
    parallel((int64_t)bytes, GRAIN * (int64_t)sizeof(float), clear_range, data);
}

void cpu_add_arrays(const float *a, const float *b, float *out, int64_t count)
{
    parallel(count, GRAIN, add_range, &(struct arrays){.a = a, .b = b, .out = out});
}

void cpu_sum(const struct view *destination, const struct view *source)
{
    if (destination->element == ELEMENT_F32 && source->element == ELEMENT_F32)
        cpu_add_arrays(destination->data, source->data, destination->data, box_count(&source->box));
    else
        plain_sum(destination, source);
}

struct squares {
    const float *data;
    int64_t count;
    double parts[PARTS];
};

VECTORISED static double square_run(const float *data, int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)data[i] * data[i];
    return sum;
}

static void square_range(const void *context, int64_t first, int64_t end)
{
    struct squares *squares = (struct squares *)context; /* each part is one thread's */
    for (int64_t part = first; part < end; part++) {
        int64_t from = squares->count * part / PARTS, to = squares->count * (part + 1) / PARTS;
        squares->parts[part] = square_run(squares->data + from, to - from);
    }
}

void cpu_square_sum(const float *data, size_t count, float *sum)
{
    struct squares squares = {.data = data, .count = (int64_t)count};
    parallel(PARTS, 1, square_range, &squares);
    double whole = 0;
    for (int i = 0; i < PARTS; i++)
        whole += squares.parts[i];
    *sum += (float)whole;
}

void cpu_pass(const struct kernel_call *call, int i)
{
    const struct view *from = &call->gradient[operation_output(call->node->operation)];
    float *destination = call->gradient[i].data;
    size_t count = (size_t)box_count(&from->box);
    if (!destination || destination == from->data || count == 0)
        return;
    if (call_accumulates(call, i))
        cpu_sum(&call->gradient[i], from);
    else
        memcpy(destination, from->data, count * sizeof(float));
}
