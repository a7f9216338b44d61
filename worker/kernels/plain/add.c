/* add.c - y = x + z. Backward, both gradients are that of y. */
#include "worker/kernels/plain/plain.h"

static void forward(const struct kernel_call *call)
{
    const float *x = call->operand[0].data, *z = call->operand[1].data;
    float *y = call->operand[2].data;
    for (int64_t i = 0; i < box_count(&call->operand[2].box); i++)
        y[i] = x[i] + z[i];
}

static void backward(const struct kernel_call *call)
{
    call_pass(call, 0);
    call_pass(call, 1);
}

const struct kernel plain_add = {"add", {{forward}, {backward}}};
