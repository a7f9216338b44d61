/* gelu.cu - y = x/2 (1 + t), t = tanh(k (x + c x^3)): Hendrycks and Gimpel, arXiv 1606.08415. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

#define K 0.79788456080286535588f /* sqrt(2 / pi) */
#define C 0.044715f

template <typename E> __global__ void activate(const E *x, E *y, int64_t count)
{
    each_element_ahead(
        count, [=](int64_t i) { return wide(x[i]); },
        [=](int64_t i, float u) { set_at(&y[i], u / 2 * (1 + tanhf(K * (u + C * u * u * u)))); });
}

struct given {
    float x, dy, dx;
};

template <typename E> __global__ void slope(const E *x, const E *dy, E *dx, bool add, int64_t count)
{
    each_element_ahead(
        count,
        [=](int64_t i) {
            return given{wide(x[i]), wide(dy[i]), there_at(&dx[i], add)};
        },
        [=](int64_t i, given of) {
            float u = of.x, t = tanhf(K * (u + C * u * u * u));
            float rise = (1 + t) / 2 + u / 2 * (1 - t * t) * K * (1 + 3 * C * u * u);
            set_at(&dx[i], add ? of.dx + of.dy * rise : of.dy * rise);
        });
}

template <typename E> void forward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->operand[1].box);
    launch_elements("gelu", activate<E>, count, (const E *)call->operand[0].data,
                    (E *)call->operand[1].data, count);
}

template <typename E> void backward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->gradient[1].box);
    E *dx = (E *)call->gradient[0].data;
    if (dx)
        launch_elements("gelu backward", slope<E>, count, (const E *)call->operand[0].data,
                        (const E *)call->gradient[1].data, dx, call_accumulates(call, 0), count);
}

} // namespace

const struct kernel cuda_gelu = {"gelu", {{EITHER(forward)}, {EITHER(backward)}}};
