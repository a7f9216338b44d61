/* parallel.h - one loop shared between the threads of a rank.
 *
 * Ranks are threads of one process and each has its own OpenMP pool, of the size it set itself:
 * the only place where our kernels start threads. Every thread takes one contiguous range, so
 * that a sum made within a range has the same bits whenever the number of threads is the same. */
#ifndef WORKER_KERNELS_CPU_PARALLEL_H
#define WORKER_KERNELS_CPU_PARALLEL_H

#include "common/base/vectorised.h"

#include <stdint.h>

typedef void range_fn(const void *context, int64_t first, int64_t end);

/* Run body over [0, count), in ranges of a multiple of `grain`. */
void parallel(int64_t count, int64_t grain, range_fn *body, const void *context);
int parallel_threads(void);
void parallel_set_threads(int count);

#endif
