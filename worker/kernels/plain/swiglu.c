/* swiglu.c - y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { X, Z, Y };

static void forward(const struct kernel_call *call)
{
    const float *x = call->operand[X].data, *z = call->operand[Z].data;
    float *y = call->operand[Y].data;
    for (int64_t i = 0; i < box_count(&call->operand[Y].box); i++)
        y[i] = (float)(x[i] / (1 + exp(-(double)x[i])) * z[i]);
}

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. The gradient of x may lie where that of y does. */
static void backward(const struct kernel_call *call)
{
    const float *x = call->operand[X].data, *z = call->operand[Z].data;
    const float *dy = call->gradient[Y].data;
    float *dx = call->gradient[X].data, *dz = call->gradient[Z].data;
    for (int64_t i = 0; i < box_count(&call->gradient[Y].box); i++) {
        double s = 1 / (1 + exp(-(double)x[i])), given = dy[i];
        if (dz)
            put(&dz[i], call_accumulates(call, Z), given * x[i] * s);
        if (dx)
            put(&dx[i], call_accumulates(call, X), given * z[i] * s * (1 + x[i] * (1 - s)));
    }
}

const struct kernel plain_swiglu = {"swiglu", {{forward}, {backward}}};
