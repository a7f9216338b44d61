/* swiglu.cu - y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

enum { X, Z, Y };

struct given {
    float x, z, dy;
};

template <typename E> __global__ void gate(const E *x, const E *z, E *y, int64_t count)
{
    each_element_ahead(
        count,
        [=](int64_t i) {
            return given{wide(x[i]), wide(z[i])};
        },
        [=](int64_t i, given of) { set_at(&y[i], of.x / (1 + expf(-of.x)) * of.z); });
}

template <typename E> struct gradients {
    const E *x, *z, *dy;
    E *dx, *dz; /* NULL: not wanted */
    bool add_x, add_z;
};

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. dx may share memory with dy. */
template <typename E> __global__ void slopes(struct gradients<E> g, int64_t count)
{
    each_element_ahead(
        count,
        [=](int64_t i) {
            return given{wide(g.x[i]), wide(g.z[i]), wide(g.dy[i])};
        },
        [=](int64_t i, given of) {
            float s = 1 / (1 + expf(-of.x));
            if (g.dz)
                put_at(&g.dz[i], g.add_z, of.dy * of.x * s);
            if (g.dx)
                put_at(&g.dx[i], g.add_x, of.dy * of.z * s * (1 + of.x * (1 - s)));
        });
}

template <typename E> void forward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->operand[Y].box);
    launch_elements("swiglu", gate<E>, count, (const E *)call->operand[X].data,
                    (const E *)call->operand[Z].data, (E *)call->operand[Y].data, count);
}

template <typename E> void backward(const struct kernel_call *call)
{
    struct gradients<E> g = {
        (const E *)call->operand[X].data, (const E *)call->operand[Z].data,
            (const E *)call->gradient[Y].data, (E *)call->gradient[X].data,
            (E *)call->gradient[Z].data, call_accumulates(call, X), call_accumulates(call, Z),
    };
    int64_t count = box_count(&call->gradient[Y].box);
    launch_elements("swiglu backward", slopes<E>, count, g, count);
}

} // namespace

const struct kernel cuda_swiglu = {"swiglu", {{EITHER(forward)}, {EITHER(backward)}}};
