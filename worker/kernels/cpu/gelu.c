/* gelu.c - x/2 (1 + tanh(z)) = x s, s = 1 / (1 + exp(-2 z)), z = k (x + c x^3).
 *
 * Its slope is s + x s (1 - s) 2 z'. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/parallel.h"

#define TWO_K 1.5957691216f /* 2 sqrt(2 / pi) */
#define C 0.044715f
#define GRAIN 1024

struct pass {
    const float *x, *dy;
    float *out;
};

VECTORISED static void forward_range(const void *context, int64_t first, int64_t end)
{
    const struct pass *pass = context;
    const float *x = pass->x;
    float *y = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = x[i];
        y[i] = u / (1 + exponential(-TWO_K * (u + C * u * u * u)));
    }
}

static inline __attribute__((always_inline)) float slope(float u)
{
    float s = 1 / (1 + exponential(-TWO_K * (u + C * u * u * u)));
    return s + u * s * (1 - s) * TWO_K * (1 + 3 * C * u * u);
}

VECTORISED static void backward_range(const void *context, int64_t first, int64_t end)
{
    const struct pass *pass = context;
    const float *x = pass->x, *dy = pass->dy;
    float *dx = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dx[i] = dy[i] * slope(x[i]);
}

VECTORISED static void backward_add_range(const void *context, int64_t first, int64_t end)
{
    const struct pass *pass = context;
    const float *x = pass->x, *dy = pass->dy;
    float *dx = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dx[i] += dy[i] * slope(x[i]);
}

static void forward(const struct kernel_call *call)
{
    parallel(box_count(&call->operand[1].box), GRAIN, forward_range,
             &(struct pass){.x = call->operand[0].data, .out = call->operand[1].data});
}

static void backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        parallel(
            box_count(&call->gradient[1].box), GRAIN,
            call_accumulates(call, 0) ? backward_add_range : backward_range,
            &(struct pass){call->operand[0].data, call->gradient[1].data, call->gradient[0].data});
}

const struct kernel cpu_gelu = {"gelu", {{forward}, {backward}}};
