/* swiglu.cu - y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

enum { X, Z, Y };

__global__ void gate(const float *x, const float *z, float *y, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        y[i] = x[i] / (1 + expf(-x[i])) * z[i];
}

struct gradients {
    const float *x, *z, *dy;
    float *dx, *dz; /* NULL: not wanted */
    bool add_x, add_z;
};

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. The gradient of x may lie where that of y does. */
__global__ void slopes(struct gradients g, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step()) {
        float x = g.x[i], s = 1 / (1 + expf(-x)), given = g.dy[i];
        if (g.dz)
            put_at(&g.dz[i], g.add_z, given * x * s);
        if (g.dx)
            put_at(&g.dx[i], g.add_x, given * g.z[i] * s * (1 + x * (1 - s)));
    }
}

void forward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->operand[Y].box);
    launch_elements("swiglu", gate, count, (const float *)call->operand[X].data,
                    (const float *)call->operand[Z].data, (float *)call->operand[Y].data, count);
}

void backward(const struct kernel_call *call)
{
    struct gradients g = {
        (const float *)call->operand[X].data,
        (const float *)call->operand[Z].data,
        (const float *)call->gradient[Y].data,
        (float *)call->gradient[X].data,
        (float *)call->gradient[Z].data,
        call_accumulates(call, X),
        call_accumulates(call, Z),
    };
    int64_t count = box_count(&call->gradient[Y].box);
    launch_elements("swiglu backward", slopes, count, g, count);
}

} // namespace

const struct kernel cuda_swiglu = {"swiglu", {{forward}, {backward}}};
