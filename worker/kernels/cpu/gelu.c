/* gelu.c - x/2 (1 + tanh(z)) = x s with s = 1 / (1 + exp(-2 z)), z = k (x + c x^3).
 *
 * Its derivative is s + x s (1 - s) 2 z'. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/numbers.h"

#define TWO_K 1.5957691216f /* 2 sqrt(2 / pi) */
#define C 0.044715f
#define GRAIN 1024

struct pass {
    enum element element;
    const void *x, *dy;
    void *out;
};

/* s. Users multiply by this quotient instead of dividing themselves: GCC would divide once for each
 * use, and once more where the exponential is a constant. */
INLINED float sigmoid(float u)
{
    return 1 / (1 + exponential(-TWO_K * (u + C * u * u * u)));
}

INLINED void forward_each(const struct pass *pass, int64_t first, int64_t end, enum element e)
{
    const void *x = pass->x;
    void *y = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i);
        store(y, e, i, u * sigmoid(u));
    }
}

INLINED float slope(float u)
{
    float s = sigmoid(u);
    return s + u * s * (1 - s) * TWO_K * (1 + 3 * C * u * u);
}

INLINED void backward_each(const struct pass *pass, int64_t first, int64_t end, enum element e)
{
    const void *x = pass->x, *dy = pass->dy;
    void *dx = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(dx, e, i, load(dy, e, i) * slope(load(x, e, i)));
}

INLINED void backward_add(const struct pass *pass, int64_t first, int64_t end, enum element e)
{
    const void *x = pass->x, *dy = pass->dy;
    void *dx = pass->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(dx, e, i, load(dx, e, i) + load(dy, e, i) * slope(load(x, e, i)));
}

EITHER_ELEMENT(forward_each, pass)
EITHER_ELEMENT(backward_each, pass)
EITHER_ELEMENT(backward_add, pass)

static void forward(const struct kernel_call *call)
{
    parallel(box_count(&call->operand[1].box), GRAIN, forward_each_range,
             &(struct pass){.element = call->element,
                            .x = call->operand[0].data,
                            .out = call->operand[1].data});
}

static void backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        parallel(box_count(&call->gradient[1].box), GRAIN,
                 call_accumulates(call, 0) ? backward_add_range : backward_each_range,
                 &(struct pass){call->element, call->operand[0].data, call->gradient[1].data,
                                call->gradient[0].data});
}

const struct kernel cpu_gelu = {"gelu", {{forward}, {backward}}};
