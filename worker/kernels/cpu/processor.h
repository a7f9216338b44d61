/* processor.h - the instruction sets of this processor for which our own kernels are written.
 *
 * GIMBAL_CPU_ISA=avx2, avx512 or avx512_bf16 limits them to that, for comparison and tests.
 * Functions may be called from any thread. */
#ifndef WORKER_KERNELS_CPU_PROCESSOR_H
#define WORKER_KERNELS_CPU_PROCESSOR_H

#include <stdbool.h>

/* Each includes those before it. */
enum isa {
    ISA_ANY,
    ISA_AVX512,      /* vectors of 16 f32 numbers */
    ISA_AVX512_BF16, /* ... and dot products of bf16 */
    ISA_AMX,         /* ... and tiles of bf16, which Linux allows this process to use */
};

/* Whether kernels may use this instruction set here. */
bool processor_has(enum isa isa);
bool processor_is_intel(void);

#endif
