/* tiles.c - products of bf16 on machines that cannot multiply it, and products of few rows. Tiles
 * of both matrices are widened to the stack and multiplied in f32; the sums are rounded once. */
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"
#include "worker/kernels/cpu/sgemm.h"

#define ROWS 64
#define COLUMNS 192
#define INNER 256

struct tile {
    int64_t row, column, rows, columns;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Widen (tile.rows, tile.columns) of a matrix from (tile.row, tile.column) on. A transposed matrix
 * is widened in the order of its memory. */
VECTORISED static struct matrix widen(const struct matrix *matrix, struct tile tile, float *out)
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

INLINED void write_as(const struct product *product, struct tile tile, const float *sums,
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

VECTORISED static void write_tile(const struct product *product, struct tile tile,
                                  const float *sums)
{
    if (product->result == ELEMENT_F32)
        write_as(product, tile, sums, ELEMENT_F32);
    else
        write_as(product, tile, sums, ELEMENT_BF16);
}

static void run_tile(const struct product *product, struct tile tile)
{
    float a[ROWS * INNER], b[INNER * COLUMNS], sums[ROWS * COLUMNS];
    int64_t k = 0;
    do {
        int64_t inner = least(product->inner - k, INNER);
        struct tile left = {tile.row, k, tile.rows, inner},
                    right = {k, tile.column, inner, tile.columns};
        sgemm(tile.rows, tile.columns, inner, widen(&product->a, left, a),
              widen(&product->b, right, b), k > 0 ? 1 : 0, sums, tile.columns);
        k += INNER;
    } while (k < product->inner); /* inner is not empty */
    write_tile(product, tile, sums);
}

static int64_t across(const struct product *product)
{
    return (product->columns + COLUMNS - 1) / COLUMNS;
}

static void run_tiles(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    for (int64_t i = first; i < end; i++) {
        struct tile tile = {.row = i / across(product) * ROWS,
                            .column = i % across(product) * COLUMNS};
        tile.rows = least(product->rows - tile.row, ROWS);
        tile.columns = least(product->columns - tile.column, COLUMNS);
        run_tile(product, tile);
    }
}

void product_by_tiles(const struct product *product)
{
    parallel((product->rows + ROWS - 1) / ROWS * across(product), 1, run_tiles, product);
}
