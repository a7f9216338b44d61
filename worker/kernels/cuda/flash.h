/* flash.h - causal attention in bf16 by cuDNN, where it is there and takes the call: whole
 * sequences, heads of a multiple of 8 numbers, memory at multiples of 16 bytes, gradients of all
 * three inputs that are not added to anything. Other calls, and all where it is not there, are for
 * the kernels of core.h; so ranks that are to have the same bits need the same cuDNN, or none. */
#ifndef WORKER_KERNELS_CUDA_FLASH_H
#define WORKER_KERNELS_CUDA_FLASH_H

#include "worker/kernels/cuda/cuda.h"

struct flash; /* of a lane: its plans */

#ifdef HAVE_CUDNN
/* In the calling thread's lane. False: nothing was done. */
bool flash_forward(const struct kernel_call *call);
bool flash_backward(const struct kernel_call *call);
/* Makes the plan that such a call is run by: to load its code waits for all that the device does,
 * and meanwhile nobody issues anything to it. */
void flash_prepare(const struct kernel_call *call, enum direction direction);
void flash_close(struct flash *flash); /* accepts NULL */
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

inline void flash_close(struct flash *)
{
}
#endif

#endif
