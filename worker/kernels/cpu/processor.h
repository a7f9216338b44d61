/* processor.h - what this machine's processor has that our own kernels are written for.
 *
 * GIMBAL_CPU_ISA=avx2, avx512, or avx512_bf16 holds them back to that, to compare with it or to
 * test it. */
#ifndef WORKER_KERNELS_CPU_PROCESSOR_H
#define WORKER_KERNELS_CPU_PROCESSOR_H

#include <stdbool.h>

/* Each has what those before it have. */
enum isa {
    ISA_ANY,
    ISA_AVX512,      /* vectors of 16 numbers of f32 */
    ISA_AVX512_BF16, /* that multiply twice as many of bf16 */
    ISA_AMX,         /* tiles of bf16, that this process may use */
};

bool processor_has(enum isa isa);
bool processor_is_intel(void);

#endif
