/* add.cu - y = x + z. Backward, both gradients are that of y. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

template <typename E> __global__ void add(const E *x, const E *z, E *y, int64_t count)
{
    each_element_ahead(
        count, [=](int64_t i) { return wide(x[i]) + wide(z[i]); },
        [=](int64_t i, float sum) { set_at(&y[i], sum); });
}

template <typename E> void forward(const struct kernel_call *call)
{
    int64_t count = box_count(&call->operand[2].box);
    launch_elements("add", add<E>, count, (const E *)call->operand[0].data,
                    (const E *)call->operand[1].data, (E *)call->operand[2].data, count);
}

void backward(const struct kernel_call *call)
{
    cuda_pass(call, 0);
    cuda_pass(call, 1);
}

} // namespace

const struct kernel cuda_add = {"add", {{EITHER(forward)}, {backward}}};
