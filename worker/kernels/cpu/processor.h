/* processor.h - what a rank's thread may use of this processor: the instruction sets for which our
 * own kernels are written, threads, scratch memory in the cache, and numbers that are nearly zero.
 *
 * GIMBAL_CPU_ISA=avx2, avx512 or avx512_bf16 limits instruction sets to that, for comparison and
 * tests. Functions may be called from any thread. */
#ifndef WORKER_KERNELS_CPU_PROCESSOR_H
#define WORKER_KERNELS_CPU_PROCESSOR_H

#include "common/base/vectorised.h"

#include <stdbool.h>
#include <stdint.h>

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

/* Divides a loop between the threads of a rank. Ranks are threads of one process, and each has its
 * own OpenMP pool, of the size that it has set. This is the only place where our kernels start
 * threads. Every thread takes one contiguous range, so a sum that is made within a range has the
 * same bits whenever the number of threads is the same. */

/* Handle [first, end). */
typedef void range_fn(const void *context, int64_t first, int64_t end);

/* Run body over [0, count), in contiguous ranges that begin at multiples of `grain`. Returns when
 * all are done. */
void parallel(int64_t count, int64_t grain, range_fn *body, const void *context);
/* Threads that parallel() would use now: 1 inside of a body. */
int parallel_threads(void);
/* Set the number of threads for loops of the calling thread; at least 1. */
void parallel_set_threads(int count);

/* A thread's memory for packed matrices, which is freed when the thread ends. */
#define SCRATCH_BYTES 1572864 /* 1.5 MiB: fits in the L2 cache of processors with AVX-512 */

/* The calling thread's SCRATCH_BYTES, aligned to a cache line. Their contents are undefined. */
void *scratch_find(void);

/* Flush subnormals to zero in this thread and in those that it starts later. Processors take a
 * hundred times as long for numbers below 1e-38, and the moments of weights that get no gradient
 * (an embedding's rows of rare tokens) would stay there for good. */
void subnormal_flush(void);

#endif
