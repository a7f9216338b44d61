/* add.cu - y = x + z. Backward, both gradients are that of y. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/pack.h"

namespace
{

template <typename E> struct sum {
    const E *x, *z;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]), other = numbers_at<N>(&z[i]);
        for (int k = 0; k < N; k++)
            y.of[k] += other.of[k];
        return y;
    }
};

template <typename E> void forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data, *z = (const E *)call->operand[1].data;
    launch_packs("add", sum<E>{x, z}, (E *)call->operand[2].data, box_count(&call->operand[2].box),
                 {x, z});
}

void backward(const struct kernel_call *call)
{
    cuda_pass(call, 0);
    cuda_pass(call, 1);
}

} // namespace

const struct kernel cuda_add = {"add", {{EITHER(forward)}, {backward}}};
