/* product.c - chooses the implementation of a matrix product, and the ways that need no instruction
 * set: libraries for f32, and tiles for bf16.
 *
 * For f32, that is our own code, oneDNN or OpenBLAS.
 *
 * GFLOP/s of one core for (rows x inner) (inner x columns), forward:
 *                          2048 x  384x384  384x1152  384x1536  1536x384
 * AMD Zen 4, oneDNN 2.6             114       112       113       112
 *            OpenBLAS 0.3.21        100       104       105       101    (peak 118)
 *                          4096 x  768x768       768x3072     3072x768
 * Intel AMX, oneDNN                 174            64           167
 *            OpenBLAS               122           166           146
 * For gradients, on the AMD: oneDNN 103-112 (of the input), 113 (of the weight), OpenBLAS 98-103,
 * our own 91-111, also for attention's small products, where oneDNN has 72-109; of the weight on
 * the Intel: oneDNN 138 (1536x384) to 213 (3072x768), OpenBLAS 187 to 201.
 *
 * On a newer Intel, which OpenBLAS 0.3.21 does not know, it uses its code for a Prescott: 10 to 17.
 * So OpenBLAS is used only if oneDNN is not available or refuses, and on Intel's processors with
 * AVX-512 products are our own (avx512.c). There, the best of many alternating runs, while the
 * core's other hyperthread was busy, with OPENBLAS_CORETYPE=SkylakeX (peak of such a core 179):
 *                          2048 x  384x384  384x1152  384x1536  1536x384   of the weights:
 *            our own               158       154       147       148       146  129  144  150
 *            oneDNN 2.6.3          167       155       143       157       162  117  137  118
 *            OpenBLAS              155       153       136       145       146  136  150  145
 * and our own includes the bias. bench/kernels prints these. The choice is fixed, not timed, so
 * that replicas on equal machines sum in the same order.
 *
 * Several ranks' threads may call this at once: oneDNN keeps no state, OpenBLAS (its OpenMP build)
 * only buffers under a lock, and both use the caller's OpenMP pool. */
#include "worker/kernels/cpu/product.h"

#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/processor.h"

#include <cblas.h>
#if defined(HAVE_ONEDNN) && defined(__x86_64__) /* elsewhere OpenBLAS is faster */
#define BY_ONEDNN
#include <dnnl.h>

/* Returns false if oneDNN refuses, for lack of memory for packed copies; OpenBLAS has its buffers
 * already. */
static bool sgemm_by_onednn(int64_t rows, int64_t columns, int64_t inner, struct matrix a,
                            struct matrix b, float beta, float *c, int64_t stride)
{
    return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1,
                      a.data, a.stride, b.data, b.stride, beta, c, stride) == dnnl_success;
}
#endif

void sgemm(int64_t rows, int64_t columns, int64_t inner, struct matrix a, struct matrix b,
           float beta, float *c, int64_t stride)
{
    if (processor_is_intel() && product_by_avx512(&(struct product){.rows = rows,
                                                                    .columns = columns,
                                                                    .inner = inner,
                                                                    .a = a,
                                                                    .b = b,
                                                                    .add = beta != 0,
                                                                    .c = c,
                                                                    .stride = stride}))
        return;
#ifdef BY_ONEDNN
    if (sgemm_by_onednn(rows, columns, inner, a, b, beta, c, stride))
        return;
#endif
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)inner, 1,
                a.data, (int)a.stride, b.data, (int)b.stride, beta, c, (int)stride);
}

/* Products of bf16 on machines that cannot multiply it, and products of few rows. Tiles
 * of both matrices are widened to the stack and multiplied in f32; the sums are rounded once. */

#define TILE_ROWS 64
#define TILE_COLUMNS 192
#define TILE_INNER 256

struct tile {
    int64_t row, column, rows, columns;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Widen (tile.rows, tile.columns) of a matrix from (tile.row, tile.column) on. A transposed matrix
 * is widened in the order of its memory. */
VECTORISED static struct matrix tile_widen(const struct matrix *matrix, struct tile tile,
                                           float *out)
{
    if (matrix->transposed)
        tile = (struct tile){tile.column, tile.row, tile.columns, tile.rows};
    const uint16_t *from = (const uint16_t *)matrix->data + tile.row * matrix->stride + tile.column;
    for (int64_t row = 0; row < tile.rows; row++) {
        float *to = out + row * tile.columns;
#pragma omp simd
        for (int64_t i = 0; i < tile.columns; i++)
            to[i] = bf16_widen(from[row * matrix->stride + i]);
    }
    return (struct matrix){out, tile.columns, matrix->transposed};
}

INLINED void tile_write_as(const struct product *product, struct tile tile, const float *sums,
                           enum element result)
{
    for (int64_t row = 0; row < tile.rows; row++) {
        void *c = from_number(product->c, result, (tile.row + row) * product->stride + tile.column);
        const uint16_t *bias = (const uint16_t *)product->bias;
        const float *sum = sums + row * tile.columns;
#pragma omp simd
        for (int64_t i = 0; i < tile.columns; i++) {
            float before = product->add ? load(c, result, i) : 0;
            float constant = bias ? bf16_widen(bias[tile.column + i]) : 0;
            store(c, result, i, sum[i] + constant + before);
        }
    }
}

VECTORISED static void tile_write(const struct product *product, struct tile tile,
                                  const float *sums)
{
    if (product->result == ELEMENT_F32)
        tile_write_as(product, tile, sums, ELEMENT_F32);
    else
        tile_write_as(product, tile, sums, ELEMENT_BF16);
}

static void tiles_run_one(const struct product *product, struct tile tile)
{
    float a[TILE_ROWS * TILE_INNER], b[TILE_INNER * TILE_COLUMNS], sums[TILE_ROWS * TILE_COLUMNS];
    int64_t k = 0;
    do {
        int64_t inner = least(product->inner - k, TILE_INNER);
        struct tile left = {tile.row, k, tile.rows, inner},
                    right = {k, tile.column, inner, tile.columns};
        sgemm(tile.rows, tile.columns, inner, tile_widen(&product->a, left, a),
              tile_widen(&product->b, right, b), k > 0 ? 1 : 0, sums, tile.columns);
        k += TILE_INNER;
    } while (k < product->inner); /* inner is not empty */
    tile_write(product, tile, sums);
}

static int64_t tiles_across(const struct product *product)
{
    return (product->columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

static void tiles_run(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    for (int64_t i = first; i < end; i++) {
        struct tile tile = {.row = i / tiles_across(product) * TILE_ROWS,
                            .column = i % tiles_across(product) * TILE_COLUMNS};
        tile.rows = least(product->rows - tile.row, TILE_ROWS);
        tile.columns = least(product->columns - tile.column, TILE_COLUMNS);
        tiles_run_one(product, tile);
    }
}

void product_by_tiles(const struct product *product)
{
    parallel((product->rows + TILE_ROWS - 1) / TILE_ROWS * tiles_across(product), 1, tiles_run,
             product);
}

/* Length along inner of one product of bf16 by oneDNN. oneDNN 2.6.3 with AMX, one core, GFLOP/s of
 * products (384 or 3072, inner) (inner, 1536 or 768):
 *     inner  256   512   768  1024  4096
 *            922   933          662   633
 *            943  1024   797   667   651 */
#define PIECE_INNER 512

VECTORISED static void product_add_bias(const void *context, int64_t first, int64_t end)
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
static void product_run_empty(const struct product *product)
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
static struct matrix matrix_advance(struct matrix matrix, bool rows, int64_t k)
{
    int64_t step = rows != matrix.transposed ? matrix.stride : 1;
    matrix.data = from_number(matrix.data, ELEMENT_BF16, k * step);
    return matrix;
}

/* bf16 products by oneDNN or tiles. Long sums are made in pieces if intermediate sums are not
 * rounded. */
static void product_run_narrow(const struct product *product)
{
    int64_t length = product->result == ELEMENT_F32 ? PIECE_INNER : product->inner;
    for (int64_t k = 0; k < product->inner; k += length) {
        struct product piece = *product;
        piece.inner = product->inner - k < length ? product->inner - k : length;
        piece.a = matrix_advance(product->a, false, k);
        piece.b = matrix_advance(product->b, true, k);
        if (k > 0) {
            piece.add = true;
            piece.bias = NULL;
        }
        if (!product_by_onednn(&piece))
            product_by_tiles(&piece);
    }
}

/* For f32 on processors other than Intel's, libraries are faster: see above. */
static bool product_run_own(const struct product *product)
{
    return product_by_amx(product) || ((product->element != ELEMENT_F32 || processor_is_intel()) &&
                                       product_by_avx512(product));
}

void product_run(const struct product *product)
{
    if (product->rows == 0 || product->columns == 0)
        return;
    if (product->inner == 0) {
        product_run_empty(product);
    } else if (product_run_own(product)) {
        return;
    } else if (product->element == ELEMENT_F32) {
        sgemm(product->rows, product->columns, product->inner, product->a, product->b,
              product->add ? 1 : 0, product->c, product->stride);
        if (product->bias)
            parallel(product->rows, 1, product_add_bias, product);
    } else {
        product_run_narrow(product);
    }
}
