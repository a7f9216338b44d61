/* processor.h - what this machine's processor has that our own kernels are written for.
 *
 * GIMBAL_CPU_ISA=avx2, or avx512, holds them back to that, to compare with it or to test it. */
#ifndef WORKER_KERNELS_CPU_PROCESSOR_H
#define WORKER_KERNELS_CPU_PROCESSOR_H

#include <stdbool.h>

/* AVX-512 as Intel has it, two products of 16 numbers a cycle: on others libraries are as fast. */
bool processor_has_avx512(void);
/* AMX for bf16, that this process may use. */
bool processor_has_amx(void);

#endif
