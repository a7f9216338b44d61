/* gelu.c - y = x/2 (1 + t), t = tanh(k (x + c x^3)): Hendrycks and Gimpel, arXiv 1606.08415. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

static const double k = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double c = 0.044715;

static void forward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[0], *y = &call->operand[1];
    for (int64_t i = 0; i < box_count(&y->box); i++) {
        double u = get(x, i);
        put(y, i, false, u / 2 * (1 + tanh(k * (u + c * u * u * u))));
    }
}

static void backward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[0], *dy = &call->gradient[1], *dx = &call->gradient[0];
    if (!dx->data)
        return;
    for (int64_t i = 0; i < box_count(&dy->box); i++) {
        double u = get(x, i), t = tanh(k * (u + c * u * u * u));
        double slope = (1 + t) / 2 + u / 2 * (1 - t * t) * k * (1 + 3 * c * u * u);
        put(dx, i, call_accumulates(call, 0), get(dy, i) * slope);
    }
}

const struct kernel plain_gelu = {"gelu", {{forward}, {backward}}};
