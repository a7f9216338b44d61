/* add.cu - y = x + z. Backward, both gradients are that of y. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

__global__ void add(const float *x, const float *z, float *y, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        y[i] = x[i] + z[i];
}

void forward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->operand[2].box);
    launch_elements("add", add, count, (const float *)call->operand[0].data,
                    (const float *)call->operand[1].data, (float *)call->operand[2].data, count);
}

void backward(const struct kernel_call *call)
{
    cuda_pass(call, 0);
    cuda_pass(call, 1);
}

} // namespace

const struct kernel cuda_add = {"add", {{forward}, {backward}}};
