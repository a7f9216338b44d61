/* swiglu.c - y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { X, Z, Y };

static void forward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[X], *z = &call->operand[Z], *y = &call->operand[Y];
    for (int64_t i = 0; i < box_count(&y->box); i++)
        put(y, i, false, get(x, i) / (1 + exp(-get(x, i))) * get(z, i));
}

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. The gradient of x may share memory with that of y. */
static void backward(const struct kernel_call *call)
{
    const struct view *dx = &call->gradient[X], *dz = &call->gradient[Z];
    for (int64_t i = 0; i < box_count(&call->gradient[Y].box); i++) {
        double x = get(&call->operand[X], i), z = get(&call->operand[Z], i);
        double s = 1 / (1 + exp(-x)), given = get(&call->gradient[Y], i);
        if (dz->data)
            put(dz, i, call_accumulates(call, Z), given * x * s);
        if (dx->data)
            put(dx, i, call_accumulates(call, X), given * z * s * (1 + x * (1 - s)));
    }
}

const struct kernel plain_swiglu = {"swiglu", {{forward}, {backward}}};
