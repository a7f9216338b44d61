/* flash.h - causal attention in bf16 by cuDNN, if it is installed and supports the call: whole
 * sequences of at least 16 positions, heads whose width is a multiple of 8 and at least 32, memory
 * at multiples of 16 bytes; backward, gradients of all three inputs, which overwrite what is there;
 * that of q must not share memory with that of y. The kernels of attention.cu do all other calls.
 * So ranks that are to compute the same bits need the same version of cuDNN, or none. */
#ifndef WORKER_KERNELS_CUDA_FLASH_H
#define WORKER_KERNELS_CUDA_FLASH_H

#include "worker/kernels/cuda/cuda.h"

#ifdef HAVE_CUDNN
/* Issue the call to the calling thread's stream. False: not supported, and nothing was done. */
bool flash_forward(const struct kernel_call *call);
bool flash_backward(const struct kernel_call *call);
/* Make the plan for such a call ahead of time, and run it once on the call's memory. Loading a
 * plan's code waits until the device is idle, and while it waits no thread can issue work to the
 * device. */
void flash_prepare(const struct kernel_call *call, enum direction direction);
#else
inline bool flash_forward(const struct kernel_call *)
{
    return false;
}

inline bool flash_backward(const struct kernel_call *)
{
    return false;
}

inline void flash_prepare(const struct kernel_call *, enum direction)
{
}
#endif

#endif
