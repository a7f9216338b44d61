/* add.c - the residual stream: y = x + z. */
#include "worker/kernels/cpu/cpu.h"

static void forward(const struct kernel_call *call)
{
    cpu_add_views(&call->operand[0], &call->operand[1], &call->operand[2]);
}

static void backward(const struct kernel_call *call)
{
    cpu_pass(call, 0);
    cpu_pass(call, 1);
}

const struct kernel cpu_add = {"add", {{forward}, {backward}}};
