/* parallel.h - divides a loop between the threads of a rank.
 *
 * Ranks are threads of one process, and each has its own OpenMP pool, of the size that it has set.
 * This is the only place where our kernels start threads. Every thread takes one contiguous range,
 * so a sum that is made within a range has the same bits whenever the number of threads is the
 * same. */
#ifndef WORKER_KERNELS_CPU_PARALLEL_H
#define WORKER_KERNELS_CPU_PARALLEL_H

#include "common/base/vectorised.h"

#include <stdint.h>

/* Handle [first, end). */
typedef void range_fn(const void *context, int64_t first, int64_t end);

/* Run body over [0, count), in contiguous ranges that begin at multiples of `grain`. Returns when
 * all are done. */
void parallel(int64_t count, int64_t grain, range_fn *body, const void *context);
/* Threads that parallel() would use now: 1 inside of a body. */
int parallel_threads(void);
/* Set the number of threads for loops of the calling thread; at least 1. */
void parallel_set_threads(int count);

#endif
