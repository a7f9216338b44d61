/* gelu.cu - y = x/2 (1 + t), t = tanh(k (x + c x^3)): Hendrycks and Gimpel, arXiv 1606.08415. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/pack.h"

#include <type_traits>

namespace
{

#define K 0.79788456080286535588f /* sqrt(2 / pi) */
#define C 0.044715f

/* For bf16 with the device's own exponential, which is off by less than the result is rounded. */
template <typename E> __device__ float tangent(float u)
{
    float inner = K * (u + C * u * u * u);
    if constexpr (std::is_same_v<E, float>)
        return tanhf(inner);
    else
        return 1 - __fdividef(2, __expf(2 * inner) + 1);
}

template <typename E> struct activate {
    const E *x;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]);
        for (int k = 0; k < N; k++)
            y.of[k] = y.of[k] / 2 * (1 + tangent<E>(y.of[k]));
        return y;
    }
};

template <typename E> struct slope {
    const E *x, *dy, *before; /* before: what it is added to, or NULL */
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> of = numbers_at<N>(&x[i]), dx = numbers_at<N>(&dy[i]), sum = {
        };
        if (before)
            sum = numbers_at<N>(&before[i]);
        for (int k = 0; k < N; k++) {
            float u = of.of[k], t = tangent<E>(u);
            float rise = (1 + t) / 2 + u / 2 * (1 - t * t) * K * (1 + 3 * C * u * u);
            sum.of[k] += dx.of[k] * rise;
        }
        return sum;
    }
};

template <typename E> void forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data;
    launch_packs("gelu", activate<E>{x}, (E *)call->operand[1].data,
                 box_count(&call->operand[1].box), {x});
}

template <typename E> void backward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data, *dy = (const E *)call->gradient[1].data;
    E *dx = (E *)call->gradient[0].data;
    if (dx)
        launch_packs("gelu backward", slope<E>{x, dy, call_accumulates(call, 0) ? dx : NULL}, dx,
                     box_count(&call->gradient[1].box), {x, dy});
}

} // namespace

const struct kernel cuda_gelu = {"gelu", {{EITHER(forward)}, {EITHER(backward)}}};
