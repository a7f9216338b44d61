/* product.h - matrix products, of f32 or of bf16, by our own code or the library that is fastest
 * here. */
#ifndef WORKER_KERNELS_CPU_PRODUCT_H
#define WORKER_KERNELS_CPU_PRODUCT_H

#include "common/base/element.h"

#include <stdbool.h>
#include <stdint.h>

/* A row-major matrix in memory whose rows are `stride` numbers apart, read as its transpose or
 * not. */
struct matrix {
    const void *data;
    int64_t stride;
    bool transposed;
};

/* c (rows, columns) = a b + bias, or that added to c; a is (rows, inner), b (inner, columns),
 * bias (columns). Sums are f32, and rounded where they are written. */
struct product {
    int64_t rows, columns, inner;
    enum element element; /* of a, b and bias */
    struct matrix a, b;
    const void *bias; /* NULL: none */
    bool add;         /* else what c holds is not read */
    void *c;
    int64_t stride;      /* of c */
    enum element result; /* of c; f32 where a and b are */
};

/* Uses the threads of the caller; with as many of them, the same bits. */
void product_run(const struct product *product);

/* Ways of our own. On processors with AVX-512, for bf16 where they multiply it; false: it is
 * another one, there are too few rows, or sums are too long to be kept in f32. */
#ifdef __x86_64__
bool product_by_avx512(const struct product *product);
#else
static inline bool product_by_avx512(const struct product *product)
{
    (void)product;
    return false;
}
#endif

/* For bf16, by AMX; false: there is none here, it is f32, or sums are too long to be kept in f32.
 */
#ifdef __x86_64__
bool product_by_amx(const struct product *product);
#else
static inline bool product_by_amx(const struct product *product)
{
    (void)product;
    return false;
}
#endif

/* Ways for bf16. By oneDNN, where this was built with it and the machine has AMX; false: it has
 * not, or the library has not done it. */
#ifdef HAVE_ONEDNN
bool product_by_onednn(const struct product *product);
#else
static inline bool product_by_onednn(const struct product *product)
{
    (void)product;
    return false;
}
#endif
/* Anywhere: by f32 products of tiles that are widened. */
void product_by_tiles(const struct product *product);

#endif
