/* parts.h - the parts of the bench; each prints its lines. */
#ifndef BENCH_KERNELS_PARTS_H
#define BENCH_KERNELS_PARTS_H

#include "worker/kernels/kernels.h"

/* Our own and the libraries' products of such matrices, in all forms that training has; the best
 * rate, in GFLOP/s. */
double bench_product(int rows, int inner, int columns, enum element element);
/* An operation forward and backward on such numbers; seconds of both directions. */
double bench_operation(const struct device *device, const char *name, const struct sizes *sizes,
                       enum element element);
/* What follows a step for so many parameters: their gradients' norm, and the update; seconds. */
double bench_update(const struct device *device, size_t count);

#endif
