/* product.c - which way a product goes. */
#include "worker/kernels/cpu/product.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/sgemm.h"

INLINED void add_rows(const struct product *product, int64_t first, int64_t end)
{
    const float *bias = product->bias;
    for (int64_t row = first; row < end; row++) {
        float *c = (float *)product->c + row * product->stride;
#pragma omp simd
        for (int64_t i = 0; i < product->columns; i++)
            c[i] += bias[i];
    }
}

VECTORISED static void add_bias(const void *context, int64_t first, int64_t end)
{
    add_rows(context, first, end);
}

/* No terms: what is left is c and the bias. */
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

void product_run(const struct product *product)
{
    if (product->rows == 0 || product->columns == 0)
        return;
    if (product->inner == 0) {
        run_empty(product);
    } else if (product->element == ELEMENT_F32) {
        sgemm(product->rows, product->columns, product->inner, product->a, product->b,
              product->add ? 1 : 0, product->c, product->stride);
        if (product->bias)
            parallel(product->rows, 1, add_bias, product);
    } else if (!product_by_onednn(product)) {
        product_by_tiles(product);
    }
}
