/* update.cu - AdamW in one pass over the four arrays of a slice, with many slices in one launch.
 * The kernel reads the loss and the norm from device memory, decides whether the step is finite,
 * and scales the gradient, so the host does not wait for them. */
#include "worker/kernels/cuda/chunks.h"
#include "worker/kernels/cuda/cuda.h"

#include <cfloat>
#include <cmath>

namespace
{

#define SLICES_MAX 64

/* What all slices of a step share. scale1, scale2: the bias corrections 1 / (1 - beta^step). */
struct rule {
    float rate, beta1, beta2, epsilon, clip, scale1, scale2;
    const float *loss, *square_sum;
};

struct slice {
    float *parameter, *gradient, *first, *second;
    int64_t count, chunks_end; /* chunks_end: chunks of all slices up to and with this one */
    float decay;
};

struct slices {
    struct slice of[SLICES_MAX];
    int64_t chunks;
};

static_assert(sizeof(struct rule) + sizeof(struct slices) <= 4096, "what a launch may be given");

__device__ bool is_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}

/* Loshchilov and Hutter, arXiv 1711.05101, algorithm 2. */
__device__ void update_element(const struct rule &rule, const struct slice &slice, int64_t i,
                               float scale)
{
    float keep = 1 - rule.rate * slice.decay;
    float gradient = slice.gradient[i] * scale;
    float first = rule.beta1 * slice.first[i] + (1 - rule.beta1) * gradient;
    float second = rule.beta2 * slice.second[i] + (1 - rule.beta2) * gradient * gradient;
    float move = first * rule.scale1 / (sqrtf(second * rule.scale2) + rule.epsilon);
    slice.first[i] = first;
    slice.second[i] = second;
    slice.parameter[i] = keep * slice.parameter[i] - rule.rate * move;
}

__global__ void update(struct rule rule, struct slices slices)
{
    float loss = *rule.loss, norm = sqrtf(*rule.square_sum);
    if (!is_finite(loss) || !is_finite(norm))
        return;
    float scale = rule.clip > 0 && norm > rule.clip ? rule.clip / norm : 1;
    each_chunk(slices.of, slices.chunks, [&](const struct slice &slice, int64_t i) {
        update_element(rule, slice, i, scale);
    });
}

struct rule rule_of(const struct update_call *call)
{
    return {
        call->rate,
        call->beta1,
        call->beta2,
        call->epsilon,
        call->clip,
        (float)(1 / (1 - pow((double)call->beta1, (double)call->step))),
        (float)(1 / (1 - pow((double)call->beta2, (double)call->step))),
        call->loss,
        call->square_sum,
    };
}

/* Add calls until the slices are full, leaving out empty ones; returns how many were consumed. */
int fill(struct slices *slices, const struct update_call *calls, int count)
{
    int taken = 0, i = 0;
    for (; i < count && taken < SLICES_MAX; i++) {
        const struct update_call *call = &calls[i];
        if (call->count == 0)
            continue;
        slices->chunks += chunks_of((int64_t)call->count);
        slices->of[taken++] = {call->parameter,      call->gradient, call->first, call->second,
                               (int64_t)call->count, slices->chunks, call->decay};
    }
    return i;
}

} // namespace

void cuda_update_all(const struct update_call *calls, int count)
{
    struct rule rule = count > 0 ? rule_of(calls) : (struct rule){};
    for (int done = 0; done < count;) {
        struct slices slices = {};
        done += fill(&slices, calls + done, count - done);
        launch_blocks("update", update, dim3(blocks_of(slices.chunks, 1)), rule, slices);
    }
}

void cuda_update(const struct update_call *call)
{
    cuda_update_all(call, 1);
}
