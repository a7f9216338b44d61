/* cuda.h - the functions and kernels that make up device_cuda (device.cu), implemented in C++
 * behind the C interface of kernels.h, which states their contracts. Work is issued to the
 * calling thread's stream. */
#ifndef WORKER_KERNELS_CUDA_CUDA_H
#define WORKER_KERNELS_CUDA_CUDA_H

extern "C" {
#include "worker/kernels/call.h"

extern const struct kernel cuda_add, cuda_attention, cuda_embed, cuda_gelu, cuda_linear, cuda_loss,
    cuda_norm, cuda_position, cuda_rmsnorm, cuda_rotary, cuda_swiglu;
extern const struct accelerator cuda_accelerator;
}

/* run() of struct kernel_pair: an addition, and the norm of its result. */
bool cuda_add_norm(const struct kernel_call *sum, const struct kernel_call *norm);
bool cuda_add_rmsnorm(const struct kernel_call *sum, const struct kernel_call *norm);

void cuda_copy(const struct view *destination, const struct view *source, const struct box *part);
void cuda_copy_all(const struct copy_call *calls, int count);
void cuda_clear(void *data, size_t bytes);
void cuda_sum(const struct view *destination, const struct view *source);
void cuda_square_sum(const float *data, size_t count, float *sum);
void cuda_square_sum_all(const struct square_call *calls, int count, float *sum);
void cuda_reduce(enum element element, void *destination, const void *const *sources, int count,
                 uint64_t elements, bool largest);
void cuda_update(const struct update_call *call);
void cuda_update_all(const struct update_call *calls, int count);

/* As call_pass(): the gradient of the output becomes that of operand i, or is added to it. */
void cuda_pass(const struct kernel_call *call, int i);

#endif
