/* sgemm.h - f32 matrix products, by the library that is faster here. */
#ifndef WORKER_KERNELS_CPU_SGEMM_H
#define WORKER_KERNELS_CPU_SGEMM_H

#include <stdint.h>

/* A row-major matrix in memory whose rows are `stride` apart, read as its transpose or not. */
struct matrix {
    const float *data;
    int64_t stride;
    int transposed;
};

/* c (rows, columns) = alpha a b + beta c; a is (rows, inner), b (inner, columns). What c holds
 * is not read when beta is 0. */
void sgemm(int64_t rows, int64_t columns, int64_t inner, float alpha, struct matrix a,
           struct matrix b, float beta, float *c, int64_t stride);

#endif
