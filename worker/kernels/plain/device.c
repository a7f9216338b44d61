/* device.c - the plain C device, which every machine has. */
#include "worker/kernels/plain/plain.h"

#include <math.h>
#include <string.h>

static int probe(struct error *err)
{
    (void)err;
    return 0;
}

static void clear(void *data, size_t bytes)
{
    if (bytes > 0)
        memset(data, 0, bytes);
}

void plain_sum(const struct view *destination, const struct view *source)
{
    for (int64_t i = 0; i < box_count(&source->box); i++)
        put(destination, i, true, get(source, i));
}

static void square_sum(const float *data, size_t count, float *sum)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)data[i] * data[i];
    *sum += (float)squares;
}

/* Loshchilov and Hutter, arXiv 1711.05101, algorithm 2: decay is not part of the gradient. */
static void update(const struct update_call *call)
{
    double correction1 = 1 - pow(call->beta1, (double)call->step);
    double correction2 = 1 - pow(call->beta2, (double)call->step);
    float scale;
    if (!call_update_scale(call, &scale))
        return;
    for (size_t i = 0; i < call->count; i++) {
        double gradient = (double)call->gradient[i] * scale;
        double first = call->beta1 * (double)call->first[i] + (1 - (double)call->beta1) * gradient;
        double second =
            call->beta2 * (double)call->second[i] + (1 - (double)call->beta2) * gradient * gradient;
        double move = first / correction1 / (sqrt(second / correction2) + call->epsilon);
        double parameter = call->parameter[i];
        call->first[i] = (float)first;
        call->second[i] = (float)second;
        call->parameter[i] = (float)(parameter - call->rate * (move + call->decay * parameter));
    }
}

const struct kernel *const plain_kernels[] = {
    &plain_add,  &plain_attention, &plain_embed,   &plain_gelu,   &plain_linear, &plain_loss,
    &plain_norm, &plain_position,  &plain_rmsnorm, &plain_rotary, &plain_swiglu, NULL,
};

const struct device device_plain = {
    .name = "plain",
    .probe = probe,
    .kernels = plain_kernels,
    .copy = plain_copy,
    .clear = clear,
    .add = plain_sum,
    .square_sum = square_sum,
    .update = update,
};
