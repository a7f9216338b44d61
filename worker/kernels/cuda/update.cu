/* update.cu - AdamW in one pass over four arrays; whether the step is finite, and how much its
 * gradient is scaled, is read where it lies. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cfloat>
#include <cmath>

namespace
{

__device__ bool is_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}

/* Loshchilov and Hutter, arXiv 1711.05101, algorithm 2. scale1, scale2: 1 / (1 - beta^step). */
__global__ void update(struct update_call call, float scale1, float scale2)
{
    float loss = *call.loss, norm = sqrtf(*call.square_sum);
    if (!is_finite(loss) || !is_finite(norm))
        return;
    float scale = call.clip > 0 && norm > call.clip ? call.clip / norm : 1;
    float keep = 1 - call.rate * call.decay;
    for (int64_t i = element_first(); i < (int64_t)call.count; i += element_step()) {
        float gradient = call.gradient[i] * scale;
        float first = call.beta1 * call.first[i] + (1 - call.beta1) * gradient;
        float second = call.beta2 * call.second[i] + (1 - call.beta2) * gradient * gradient;
        float move = first * scale1 / (sqrtf(second * scale2) + call.epsilon);
        call.first[i] = first;
        call.second[i] = second;
        call.parameter[i] = keep * call.parameter[i] - call.rate * move;
    }
}

} // namespace

void cuda_update(const struct update_call *call)
{
    float scale1 = (float)(1 / (1 - pow((double)call->beta1, (double)call->step)));
    float scale2 = (float)(1 / (1 - pow((double)call->beta2, (double)call->step)));
    launch_elements("update", update, (int64_t)call->count, *call, scale1, scale2);
}
