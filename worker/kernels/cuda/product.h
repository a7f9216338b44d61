/* product.h - matrix products by cuBLASLt, summed in f32 and, for f32 operands, without TF32.
 * cuBLASLt's matrices are column-major, so it sees a row-major matrix as its transpose; for
 * y = x w it is therefore asked for y' = w' x'. */
#ifndef WORKER_KERNELS_CUDA_PRODUCT_H
#define WORKER_KERNELS_CUDA_PRODUCT_H

#include <cstdint>
#include <cublasLt.h>

extern "C" {
#include "common/base/element.h"
}

struct device_stream;

/* d = a b, or with a or b transposed. All matrices are column-major. */
struct shape {
    bool a_turned, b_turned;      /* transposed */
    int64_t rows, inner, columns; /* the product is (rows, inner) by (inner, columns) */
    int64_t a_apart, b_apart;     /* leading dimensions, in elements; that of d is rows */
    enum element from, to;        /* of a and b, and of d */
    bool biased;                  /* a bias is added to every column of d */
    uint32_t aligned;             /* bytes; it and biased are filled in by product.cu */

    bool operator==(const shape &other) const = default;
};

/* d = a b, d += a b, or d = a b + bias. */
struct multiplication {
    struct shape shape;
    void *a, *b;
    const void *bias; /* an element of d's type for each row of d; NULL: none */
    void *d;
    bool add; /* never with a bias */
};

/* A shape, described to the library, with the algorithm that was chosen for it. */
struct product {
    product *next; /* in the stream's list */
    struct shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    bool good; /* false: the library cannot multiply it */
};

/* Issue it to the calling thread's stream. False: the library cannot add this bias, and nothing was
 * done. Other errors are noted in the stream. A shape that was not prepared there is chosen an
 * algorithm now, which may wait until the device is idle. */
bool product_multiply(const struct multiplication *multiplication);
/* Choose the shape's algorithm and have its code loaded, so that product_multiply() waits for
 * nothing; what it returns is known then. Overwrites a, b and d, and waits for the stream. */
bool product_prepare(const struct multiplication *multiplication);
/* Issue the product with this algorithm to the stream; its bias was set. */
cublasStatus_t product_run(const device_stream *stream, const product *product,
                           const cublasLtMatmulAlgo_t *algorithm, const void *a, const void *b,
                           void *d, bool add);
/* Choose the product's algorithm by measuring with these operands: choice.cu. */
cublasStatus_t choice_make(device_stream *stream, product *product, const void *a, const void *b);

#endif
