/* update.c - measures what ends a step: the norm of the gradients, and the optimizer's update. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"

#include "common/base/memory.h"

#include <stdlib.h>

struct updating {
    const struct device *device;
    struct update_call call;
    float loss, square_sum;
};

static void update(void *context)
{
    struct updating *updating = context;
    updating->call.step++;
    updating->device->update(&updating->call);
}

static void square(void *context)
{
    struct updating *updating = context;
    updating->square_sum = 0;
    updating->device->square_sum(updating->call.gradient, updating->call.count,
                                 &updating->square_sum);
}

double bench_update(const struct device *device, size_t count)
{
    struct updating u = {.device = device,
                         .call = {.parameter = measure_draw(count, ELEMENT_F32, 0),
                                  .gradient = measure_draw(count, ELEMENT_F32, 1),
                                  .first = measure_draw(count, ELEMENT_F32, 2),
                                  .second = xcalloc(count, sizeof(float)),
                                  .count = count,
                                  .rate = 1e-3f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-8f,
                                  .decay = 0.1f,
                                  .clip = 1}};
    u.call.loss = &u.loss;
    u.call.square_sum = &u.square_sum;
    double norm = measure_shortest(square, &u), step = measure_shortest(update, &u);
    measure_print("square_sum", 4e-9 * (double)count / norm, "GB/s");
    measure_print("update", 28e-9 * (double)count / step, "GB/s");
    free(u.call.parameter);
    free(u.call.gradient);
    free(u.call.first);
    free(u.call.second);
    return norm + step;
}
