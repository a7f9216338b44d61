/* device.cu - NVIDIA GPUs: our own kernels in f32 and bf16, matrix products by cuBLASLt, attention
 * by cuDNN where it is installed. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/words.h"

#include <cuda_runtime.h>

static int probe(struct error *err)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count == 0)
        status = cudaErrorNoDevice;
    if (status == cudaSuccess)
        status = cudaFree(NULL); /* creates the context: tests driver, device and our code */
    if (status == cudaSuccess)
        return 0;
    return words_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status),
                     "looking for a device");
}

static const struct kernel *const kernels[] = {
    &cuda_add,  &cuda_attention, &cuda_embed,   &cuda_gelu,   &cuda_linear, &cuda_loss,
    &cuda_norm, &cuda_position,  &cuda_rmsnorm, &cuda_rotary, &cuda_swiglu, NULL,
};

static const struct kernel_pair pairs[] = {
    {&cuda_add, &cuda_norm, cuda_add_norm},
    {&cuda_add, &cuda_rmsnorm, cuda_add_rmsnorm},
    {},
};

const struct device device_cuda = {
    .name = "cuda",
    .list = cuda_list,
    .choose = cuda_choose,
    .probe = probe,
    .collectives = "nccl",
    .accelerator = &cuda_accelerator,
    .kernels = kernels,
    .pairs = pairs,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .add = cuda_sum,
    .square_sum = cuda_square_sum,
    .square_sum_all = cuda_square_sum_all,
    .copy_all = cuda_copy_all,
    .update = cuda_update,
    .update_all = cuda_update_all,
};
