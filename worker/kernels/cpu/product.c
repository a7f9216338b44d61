/* product.c - chooses the implementation of a matrix product. */
#include "worker/kernels/cpu/product.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/processor.h"
#include "worker/kernels/cpu/sgemm.h"

/* Length along inner of one product by oneDNN. oneDNN 2.6.3 with AMX, one core, GFLOP/s of products
 * (384 or 3072, inner) (inner, 1536 or 768):
 *     inner  256   512   768  1024  4096
 *            922   933          662   633
 *            943  1024   797   667   651 */
#define PIECE 512

VECTORISED static void add_bias(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    const float *bias = product->bias;
    for (int64_t row = first; row < end; row++) {
        float *c = (float *)product->c + row * product->stride;
#pragma omp simd
        for (int64_t i = 0; i < product->columns; i++)
            c[i] += bias[i];
    }
}

/* An empty sum: only c and the bias are left. */
static void run_empty(const struct product *product)
{
    for (int64_t row = 0; row < product->rows; row++)
        for (int64_t i = 0; i < product->columns; i++) {
            int64_t at = row * product->stride + i;
            store(product->c, product->result, at,
                  (product->add ? load(product->c, product->result, at) : 0) +
                      (product->bias ? load(product->bias, product->element, i) : 0));
        }
}

/* The part of a matrix that begins at `k` of inner, which counts its rows or its columns. */
static struct matrix advance(struct matrix matrix, bool rows, int64_t k)
{
    int64_t step = rows != matrix.transposed ? matrix.stride : 1;
    matrix.data = from_number(matrix.data, ELEMENT_BF16, k * step);
    return matrix;
}

/* bf16 products by oneDNN or tiles. Long sums are made in pieces if intermediate sums are not
 * rounded. */
static void run_narrow(const struct product *product)
{
    int64_t length = product->result == ELEMENT_F32 ? PIECE : product->inner;
    for (int64_t k = 0; k < product->inner; k += length) {
        struct product piece = *product;
        piece.inner = product->inner - k < length ? product->inner - k : length;
        piece.a = advance(product->a, false, k);
        piece.b = advance(product->b, true, k);
        if (k > 0) {
            piece.add = true;
            piece.bias = NULL;
        }
        if (!product_by_onednn(&piece))
            product_by_tiles(&piece);
    }
}

/* For f32 on processors other than Intel's, libraries are faster: sgemm.c. */
static bool run_own(const struct product *product)
{
    return product_by_amx(product) || ((product->element != ELEMENT_F32 || processor_is_intel()) &&
                                       product_by_avx512(product));
}

void product_run(const struct product *product)
{
    if (product->rows == 0 || product->columns == 0)
        return;
    if (product->inner == 0) {
        run_empty(product);
    } else if (run_own(product)) {
        return;
    } else if (product->element == ELEMENT_F32) {
        sgemm(product->rows, product->columns, product->inner, product->a, product->b,
              product->add ? 1 : 0, product->c, product->stride);
        if (product->bias)
            parallel(product->rows, 1, add_bias, product);
    } else {
        run_narrow(product);
    }
}
