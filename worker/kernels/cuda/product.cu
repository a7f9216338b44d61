/* product.cu - matrix products by cuBLASLt. A lane keeps the shapes that it has multiplied, each
 * with the algorithm that was chosen for it at its first use. */
#include "worker/kernels/cuda/product.h"

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/lane.h"

static void product_destroy(product *product)
{
    cublasLtMatmulDescDestroy(product->operation);
    cublasLtMatrixLayoutDestroy(product->a);
    cublasLtMatrixLayoutDestroy(product->b);
    cublasLtMatrixLayoutDestroy(product->d);
    delete product;
}

void products_destroy(product *product)
{
    while (product) {
        struct product *next = product->next;
        product_destroy(product);
        product = next;
    }
}

/* The first error of a sequence. */
static cublasStatus_t and_then(cublasStatus_t status, cublasStatus_t next)
{
    return status == CUBLAS_STATUS_SUCCESS ? next : status;
}

static cudaDataType_t type_of(enum element element)
{
    return element == ELEMENT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t describe(product *product)
{
    const struct shape *s = &product->shape;
    cublasOperation_t turn_a = s->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t turn_b = s->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t a_rows = (uint64_t)(s->a_turned ? s->inner : s->rows);
    uint64_t a_columns = (uint64_t)(s->a_turned ? s->rows : s->inner);
    uint64_t b_rows = (uint64_t)(s->b_turned ? s->columns : s->inner);
    uint64_t b_columns = (uint64_t)(s->b_turned ? s->inner : s->columns);
    cublasStatus_t status =
        cublasLtMatmulDescCreate(&product->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = cublasLtMatmulDescSetAttribute(product->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                            &turn_a, sizeof turn_a);
    status = and_then(status, cublasLtMatmulDescSetAttribute(product->operation,
                                                             CUBLASLT_MATMUL_DESC_TRANSB, &turn_b,
                                                             sizeof turn_b));
    const uint32_t epilogue = s->biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    status = and_then(status, cublasLtMatmulDescSetAttribute(product->operation,
                                                             CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                             &epilogue, sizeof epilogue));
    cudaDataType_t from = type_of(s->from), to = type_of(s->to);
    status = and_then(status,
                      cublasLtMatrixLayoutCreate(&product->a, from, a_rows, a_columns, s->a_apart));
    status = and_then(status,
                      cublasLtMatrixLayoutCreate(&product->b, from, b_rows, b_columns, s->b_apart));
    return and_then(status, cublasLtMatrixLayoutCreate(&product->d, to, (uint64_t)s->rows,
                                                       (uint64_t)s->columns, s->rows));
}

/* The library derives from the address, too, how the bias is aligned. */
static cublasStatus_t set_bias(const product *product, const void *bias)
{
    return cublasLtMatmulDescSetAttribute(product->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                          &bias, sizeof bias);
}

/* Find the shape, or describe it and choose its algorithm, which makes the first step slower than
 * others. NULL: the library cannot multiply it; unless there is a bias, which can be added
 * otherwise, the error is noted in the lane. */
static const product *product_of(lane *lane, const struct shape &shape, const void *a,
                                 const void *b, const void *bias)
{
    product *product = lane->products;
    while (product && product->shape != shape)
        product = product->next;
    if (product)
        return product->good ? product : NULL;
    product = new struct product();
    product->shape = shape;
    product->next = lane->products;
    lane->products = product;
    cublasStatus_t status = describe(product);
    if (status == CUBLAS_STATUS_SUCCESS && shape.biased)
        status = set_bias(product, bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choice_make(lane, product, a, b);
    product->good = status == CUBLAS_STATUS_SUCCESS;
    if (!shape.biased)
        lane_note(status, "choosing a matrix product");
    return product->good ? product : NULL;
}

/* The largest power of two, up to 16, that divides all addresses. No load is wider than 16 bytes,
 * so more alignment does not make it another product. */
static uint32_t alignment(const void *a, const void *b, const void *d)
{
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d | 16;
    return (uint32_t)(bits & (~bits + 1));
}

cublasStatus_t product_run(const lane *lane, const product *product,
                           const cublasLtMatmulAlgo_t *algorithm, const void *a, const void *b,
                           void *d, bool add)
{
    float one = 1, beta = add ? 1 : 0;
    return cublasLtMatmul(lane->handle, product->operation, &one, a, product->a, b, product->b,
                          &beta, d, product->d, d, product->d, algorithm, lane->workspace,
                          lane_product_bytes(lane), lane->stream);
}

void product_multiply(struct shape shape, const void *a, const void *b, void *d, bool add)
{
    if (shape.rows == 0 || shape.columns == 0)
        return;
    if (shape.inner == 0) {
        if (!add)
            cuda_clear(d, (size_t)(shape.rows * shape.columns) * element_size(shape.to));
        return;
    }
    lane *lane = lane_here();
    shape.aligned = alignment(a, b, d);
    const product *product = product_of(lane, shape, a, b, NULL);
    if (product)
        lane_note(product_run(lane, product, &product->algorithm, a, b, d, add), "matrix product");
}

/* Kernels may load 16 bytes of the bias at once, whatever the heuristics were told:
 * https://github.com/pytorch/pytorch/pull/194497 */
bool product_multiply_biased(struct shape shape, const void *a, const void *b, const void *bias,
                             void *d)
{
    lane *lane = lane_here();
    if (shape.rows == 0 || shape.inner == 0 || shape.columns == 0 || (uintptr_t)bias % 16 != 0)
        return false;
    shape.biased = true;
    shape.aligned = alignment(a, b, d);
    const product *product = product_of(lane, shape, a, b, bias);
    if (!product)
        return false;
    cublasStatus_t status = set_bias(product, bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = product_run(lane, product, &product->algorithm, a, b, d, false);
    lane_note(status, "matrix product");
    return true;
}
