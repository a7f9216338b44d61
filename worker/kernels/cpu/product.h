/* product.h - matrix products of f32 or bf16, by our own code or the library that is fastest
 * here. */
#ifndef WORKER_KERNELS_CPU_PRODUCT_H
#define WORKER_KERNELS_CPU_PRODUCT_H

#include "common/base/element.h"

#include <stdbool.h>
#include <stdint.h>

/* A matrix in row-major memory whose rows are `stride` numbers apart; with `transposed`, its
 * transpose is meant. */
struct matrix {
    const void *data;
    int64_t stride;
    bool transposed;
};

/* c (rows, columns) = a b + bias, or c += a b + bias; a is (rows, inner), b (inner, columns), bias
 * (columns). Sums are f32, and rounded when they are written. */
struct product {
    int64_t rows, columns, inner;
    enum element element; /* of a, b and bias */
    struct matrix a, b;
    const void *bias; /* NULL: none */
    bool add;         /* add to c; otherwise what c holds is not read */
    void *c;
    int64_t stride;      /* of c */
    enum element result; /* element of c; f32 if a and b are f32 */
};

/* Compute a product with the caller's threads. Equal numbers of threads give equal bits. */
void product_run(const struct product *product);

/* Our own implementations. On processors with AVX-512, and for bf16 with AVX-512 BF16. Returns
 * false if the processor is another one, there are too few rows, or sums would have to be rounded
 * in between. */
#ifdef __x86_64__
bool product_by_avx512(const struct product *product);
#else
static inline bool product_by_avx512(const struct product *product)
{
    (void)product;
    return false;
}
#endif

/* For bf16, by AMX. Returns false if it is f32, there is no AMX, or sums would have to be rounded
 * in between. */
#ifdef __x86_64__
bool product_by_amx(const struct product *product);
#else
static inline bool product_by_amx(const struct product *product)
{
    (void)product;
    return false;
}
#endif

/* For bf16, by oneDNN, if this was built with it and the machine has AMX. Returns false otherwise,
 * or if the library fails. */
#ifdef HAVE_ONEDNN
bool product_by_onednn(const struct product *product);
#else
static inline bool product_by_onednn(const struct product *product)
{
    (void)product;
    return false;
}
#endif
/* For bf16 on any machine: by f32 products of widened tiles. */
void product_by_tiles(const struct product *product);

/* f32 products by whatever is fastest here: c (rows, columns) = a b + beta c; a is (rows, inner), b
 * (inner, columns), none of them empty. c has rows `stride` apart, and is not read if beta is 0. */
void sgemm(int64_t rows, int64_t columns, int64_t inner, struct matrix a, struct matrix b,
           float beta, float *c, int64_t stride);

#endif
