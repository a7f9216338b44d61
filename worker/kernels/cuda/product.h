/* product.h - matrix products in f32, without TF32, as the library wants them: its matrices lie
 * column by column, ours row by row. What it sees is the transpose, so y' = w' x' is asked for. */
#ifndef WORKER_KERNELS_CUDA_PRODUCT_H
#define WORKER_KERNELS_CUDA_PRODUCT_H

#include <cstdint>

struct shape {
    bool a_turned, b_turned;
    int64_t rows, inner, columns; /* d (rows, columns) = a b, each turned round or not */
    int64_t a_apart, b_apart;     /* from one column to the next, in memory */
    uint32_t aligned;             /* filled in: the bytes that all addresses are multiples of */

    bool operator==(const shape &other) const = default;
};

/* d = a b, or d += a b; in the calling thread's lane. */
void product_multiply(struct shape shape, const float *a, const float *b, float *d, bool add);

struct product;
void products_destroy(struct product *product);

#endif
