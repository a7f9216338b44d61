/* product.h - matrix products, summed in f32 and those of f32 without TF32, as the library wants
 * them: its matrices lie column by column, ours row by row. What it sees is the transpose, so y' =
 * w' x' is asked for. */
#ifndef WORKER_KERNELS_CUDA_PRODUCT_H
#define WORKER_KERNELS_CUDA_PRODUCT_H

#include <cstdint>
#include <cublasLt.h>

extern "C" {
#include "common/base/element.h"
}

struct lane;

struct shape {
    bool a_turned, b_turned;
    int64_t rows, inner, columns; /* d (rows, columns) = a b, each turned round or not */
    int64_t a_apart, b_apart;     /* from one column to the next, in memory */
    enum element from, to;        /* of a and b, and of d */
    uint32_t aligned;             /* filled in: the bytes that all addresses are multiples of */

    bool operator==(const shape &other) const = default;
};

/* A shape as the library knows it. */
struct product {
    product *next; /* in the lane */
    struct shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

/* d = a b, or d += a b; in the calling thread's lane. */
void product_multiply(struct shape shape, const void *a, const void *b, void *d, bool add);
/* By this algorithm. */
cublasStatus_t product_run(const lane *lane, const product *product,
                           const cublasLtMatmulAlgo_t *algorithm, const void *a, const void *b,
                           void *d, bool add);
void products_destroy(product *product);

/* Choose the product's algorithm, for such a and b: choice.cu. */
cublasStatus_t choice_make(lane *lane, product *product, const void *a, const void *b);

#endif
