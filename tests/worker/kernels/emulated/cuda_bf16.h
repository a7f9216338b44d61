/* cuda_bf16.h - the part of CUDA's bf16 interface that the kernels use, emulated on the host. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_CUDA_BF16_H
#define TESTS_WORKER_KERNELS_EMULATED_CUDA_BF16_H

extern "C" {
#include "common/base/element.h"
}

struct __nv_bfloat16 {
    uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 number)
{
    return bf16_widen(number.bits);
}

inline __nv_bfloat16 __float2bfloat16_rn(float number)
{
    return {bf16_narrow(number)};
}

#endif
