/* parts.h - the parts of the bench; each prints its lines. */
#ifndef BENCH_KERNELS_PARTS_H
#define BENCH_KERNELS_PARTS_H

#include "worker/kernels/kernels.h"

/* Products of matrices of this size by our own kernels and by the libraries, in all forms that
 * training uses; returns the best rate in GFLOP/s. */
double bench_product(int rows, int inner, int columns, enum element element);
/* An operation, forward and backward, on operands of this element type; returns the seconds of both
 * directions together. */
double bench_operation(const struct device *device, const char *name, const struct sizes *sizes,
                       enum element element);
/* What ends a step with `count` parameters: the norm of their gradients, and the update; returns
 * the seconds of both. */
double bench_update(const struct device *device, size_t count);

#endif
