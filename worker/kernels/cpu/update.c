/* update.c - AdamW in one pass over four arrays: 28 bytes of memory traffic per element. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"

#include <math.h>

#define GRAIN 4096

struct corrected {
    const struct update_call *call;
    float first, second; /* 1 / (1 - beta^step) */
    float scale;         /* of the gradient, for clipping */
};

VECTORISED static void update_range(const void *context, int64_t from, int64_t end)
{
    const struct corrected *corrected = context;
    const struct update_call call = *corrected->call;
    float scale1 = corrected->first, scale2 = corrected->second;
    float keep = 1 - call.rate * call.decay;
#pragma omp simd
    for (int64_t i = from; i < end; i++) {
        float gradient = call.gradient[i] * corrected->scale;
        float first = call.beta1 * call.first[i] + (1 - call.beta1) * gradient;
        float second = call.beta2 * call.second[i] + (1 - call.beta2) * gradient * gradient;
        float move = first * scale1 / (sqrtf(second * scale2) + call.epsilon);
        call.first[i] = first;
        call.second[i] = second;
        call.parameter[i] = keep * call.parameter[i] - call.rate * move;
    }
}

void cpu_update(const struct update_call *call)
{
    struct corrected corrected = {
        .call = call,
        .first = (float)(1 / (1 - pow(call->beta1, (double)call->step))),
        .second = (float)(1 / (1 - pow(call->beta2, (double)call->step))),
    };
    if (call_update_scale(call, &corrected.scale))
        parallel((int64_t)call->count, GRAIN, update_range, &corrected);
}
