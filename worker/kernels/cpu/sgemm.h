/* sgemm.h - f32 matrix products by whatever is fastest here. */
#ifndef WORKER_KERNELS_CPU_SGEMM_H
#define WORKER_KERNELS_CPU_SGEMM_H

#include "worker/kernels/cpu/product.h"

/* c (rows, columns) = a b + beta c; a is (rows, inner), b (inner, columns), none of them empty. c
 * has rows `stride` apart, and is not read if beta is 0. */
void sgemm(int64_t rows, int64_t columns, int64_t inner, struct matrix a, struct matrix b,
           float beta, float *c, int64_t stride);

#endif
