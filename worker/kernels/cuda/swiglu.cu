/* swiglu.cu - y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/pack.h"

namespace
{

enum { X, Z, Y };

template <typename E> struct gate {
    const E *x, *z;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]), other = numbers_at<N>(&z[i]);
        for (int k = 0; k < N; k++)
            y.of[k] *= other.of[k] / (1 + expf(-y.of[k]));
        return y;
    }
};

template <typename E> struct gradients {
    const E *x, *z, *dy;
    E *dx, *dz; /* NULL: not wanted */
    bool add_x, add_z;
};

template <int N, typename E>
__device__ void put_numbers(E *at, bool add, const struct numbers<N> &more)
{
    struct numbers<N> sum = {
    };
    if (add)
        sum = numbers_at<N>(at);
    for (int k = 0; k < N; k++)
        sum.of[k] += more.of[k];
    numbers_set<N>(at, sum);
}

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. dx may share memory with dy. */
template <int N, typename E> __global__ void slopes(struct gradients<E> g, int64_t count)
{
    for (int64_t i = element_first() * N; i < count; i += element_step() * N) {
        struct numbers<N> x = numbers_at<N>(&g.x[i]), z = numbers_at<N>(&g.z[i]);
        struct numbers<N> dy = numbers_at<N>(&g.dy[i]), dx, dz;
        for (int k = 0; k < N; k++) {
            float s = 1 / (1 + expf(-x.of[k]));
            dz.of[k] = dy.of[k] * x.of[k] * s;
            dx.of[k] = dy.of[k] * z.of[k] * s * (1 + x.of[k] * (1 - s));
        }
        if (g.dz)
            put_numbers(&g.dz[i], g.add_z, dz);
        if (g.dx)
            put_numbers(&g.dx[i], g.add_x, dx);
    }
}

template <typename E> void forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[X].data, *z = (const E *)call->operand[Z].data;
    launch_packs("swiglu", gate<E>{x, z}, (E *)call->operand[Y].data,
                 box_count(&call->operand[Y].box), {x, z});
}

template <typename E> void backward(const struct kernel_call *call)
{
    const struct gradients<E> g = {
        (const E *)call->operand[X].data, (const E *)call->operand[Z].data,
            (const E *)call->gradient[Y].data, (E *)call->gradient[X].data,
            (E *)call->gradient[Z].data, call_accumulates(call, X), call_accumulates(call, Z),
    };
    int64_t count = box_count(&call->gradient[Y].box);
    if (packs(count, {g.x, g.z, g.dy, g.dx, g.dz}))
        launch_elements("swiglu backward", slopes<PACK, E>, count / PACK, g, count);
    else
        launch_elements("swiglu backward", slopes<1, E>, count, g, count);
}

} // namespace

const struct kernel cuda_swiglu = {"swiglu", {{EITHER(forward)}, {EITHER(backward)}}};
