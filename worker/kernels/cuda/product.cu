/* product.cu - matrix products by cuBLASLt. A stream keeps the shapes that it has multiplied, each
 * with the algorithm that was chosen for it.
 *
 * The library loads an algorithm's code when it runs for the first time, and that waits until the
 * device is idle. If an exchange is waiting there for a peer that waits in the same way, neither
 * ever ends. So every shape of a program is prepared before its ranks meet. */
#include "worker/kernels/cuda/product.h"

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"
#include "worker/kernels/cuda/stream.h"

static void product_destroy(product *product)
{
    cublasLtMatmulDescDestroy(product->operation);
    cublasLtMatrixLayoutDestroy(product->a);
    cublasLtMatrixLayoutDestroy(product->b);
    cublasLtMatrixLayoutDestroy(product->d);
    delete product;
}

/* Destroy a stream's list. */
static void products_close(void *state)
{
    product *product = (struct product *)state;
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

/* The largest power of two, up to 16, that divides all addresses. No load is wider than 16 bytes,
 * so more alignment does not make it another product. */
static uint32_t alignment(const void *a, const void *b, const void *d)
{
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d | 16;
    return (uint32_t)(bits & (~bits + 1));
}

static shape shape_of(const multiplication *m)
{
    shape shape = m->shape;
    shape.biased = m->bias != NULL;
    shape.aligned = alignment(m->a, m->b, m->d);
    return shape;
}

/* NULL: the stream does not have the shape. */
static const product *product_find(const device_stream *stream, const shape &shape)
{
    const product *product = (const struct product *)stream->products.state;
    while (product && product->shape != shape)
        product = product->next;
    return product;
}

/* Describe the shape and choose its algorithm. If the library cannot multiply it, the error is
 * noted in the stream; unless there is a bias, which can be added otherwise. */
static const product *product_make(device_stream *stream, const shape &shape,
                                   const multiplication *m)
{
    product *product = new struct product();
    product->shape = shape;
    product->next = (struct product *)stream->products.state;
    stream->products = {product, products_close};
    cublasStatus_t status = describe(product);
    if (status == CUBLAS_STATUS_SUCCESS && shape.biased)
        status = set_bias(product, m->bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choice_make(stream, product, m->a, m->b);
    product->good = status == CUBLAS_STATUS_SUCCESS;
    if (!shape.biased)
        stream_note(status, "choosing a matrix product");
    return product;
}

cublasStatus_t product_run(const device_stream *stream, const product *product,
                           const cublasLtMatmulAlgo_t *algorithm, const void *a, const void *b,
                           void *d, bool add)
{
    float one = 1, beta = add ? 1 : 0;
    return cublasLtMatmul(stream->handle, product->operation, &one, a, product->a, b, product->b,
                          &beta, d, product->d, d, product->d, algorithm, stream->workspace,
                          stream_product_bytes(stream), stream->cuda);
}

static void product_issue(const device_stream *stream, const product *product,
                          const multiplication *m, bool add)
{
    cublasStatus_t status = m->bias ? set_bias(product, m->bias) : CUBLAS_STATUS_SUCCESS;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = product_run(stream, product, &product->algorithm, m->a, m->b, m->d, add);
    stream_note(status, "matrix product");
}

/* Whether it is not for the library. Its kernels may load 16 bytes of the bias at once, whatever
 * the heuristics were told: https://github.com/pytorch/pytorch/pull/194497 */
static bool is_ours(const multiplication *m)
{
    const shape &s = m->shape;
    return s.rows == 0 || s.inner == 0 || s.columns == 0 || (uintptr_t)m->bias % 16 != 0;
}

bool product_multiply(const multiplication *m)
{
    const shape shape = shape_of(m);
    device_stream *stream = stream_here();
    if (is_ours(m)) {
        if (!m->bias && !m->add)
            cuda_clear(m->d, (size_t)(shape.rows * shape.columns) * element_size(shape.to));
        return !m->bias;
    }
    const product *product = product_find(stream, shape);
    if (!product)
        product = product_make(stream, shape, m);
    if (product->good)
        product_issue(stream, product, m, m->add);
    return product->good || !m->bias;
}

/* For launch_packs(): numbers in [-1, 1) that look random, but are the same every time. */
struct noise {
    uint64_t first;
    template <int N> __device__ numbers<N> at(int64_t index) const
    {
        struct numbers<N> out;
        for (int k = 0; k < N; k++) {
            uint64_t bits = (first + (uint64_t)(index + k)) * UINT64_C(0x9e3779b97f4a7c15);
            bits = (bits ^ bits >> 32) * UINT64_C(0xd6e8feb86659fd93);
            out.of[k] = (float)(bits >> 40) * 0x1p-23f - 1;
        }
        return out;
    }
};

/* Algorithms are told apart by the bits of what they compute, of which zeros have none. */
static void product_fill(enum element element, void *data, int64_t count, uint64_t first)
{
    with_element(element, [&](auto number) {
        launch_packs("numbers to multiply", noise{first}, (decltype(number) *)data, count, {});
    });
}

bool product_prepare(const multiplication *m)
{
    const shape shape = shape_of(m);
    device_stream *stream = stream_here();
    if (is_ours(m))
        return !m->bias;
    const product *product = product_find(stream, shape);
    if (!product) {
        int64_t a_count = shape.a_apart * (shape.a_turned ? shape.rows : shape.inner);
        int64_t b_count = shape.b_apart * (shape.b_turned ? shape.inner : shape.columns);
        product_fill(shape.from, m->a, a_count, 0);
        product_fill(shape.from, m->b, b_count, (uint64_t)a_count);
        product = product_make(stream, shape, m);
        /* What adds to d may be other code than what overwrites it. */
        for (int add = 0; add < 2 && product->good && !(add && m->bias); add++)
            product_issue(stream, product, m, add);
    }
    return product->good || !m->bias;
}
