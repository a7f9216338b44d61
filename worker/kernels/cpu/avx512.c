/* avx512.c - products of f32 on Intel's processors with AVX-512, by a kernel of our own.
 *
 * A block of b is packed where the second cache holds it, in panels of 32 columns, and then passes
 * by each panel of 14 rows of a, which stays in the first one (Goto and van de Geijn, Anatomy of
 * High-Performance Matrix Multiplication, 2008, with a and b exchanged). Each number of c is summed
 * in the order of what is contracted on, in pieces that depend on their count alone: the number of
 * threads does not change a bit of it. GFLOP/s: sgemm.c. */
#include "worker/kernels/cpu/product.h"

#ifdef __x86_64__
#include "worker/kernels/cpu/avx512.h"
#include "worker/kernels/cpu/avx512_tile.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/processor.h"
#include "worker/kernels/cpu/room.h"

#define COLUMNS INT64_C(768) /* of a block of b */
#define LEAST 16             /* rows for which packing b is worth it */

/* Packed matrices: those of a are up to 14 rows, or 384 times 16 numbers. */
struct packed {
    float a[LANES * TILE_STRIDE], b[TILE_INNER * COLUMNS];
};

_Static_assert(sizeof(struct packed) <= ROOM_BYTES, "a thread's room");

/* Of b, and of what is contracted on. */
struct block {
    int64_t k, count, column, columns;
};

/* A panel of b, of up to 32 columns; what is missing becomes 0. */
AVX512 static void pack_rows(const float *b, int64_t stride, int64_t count, int64_t columns,
                             float *out)
{
    __mmask16 low = lanes(columns), high = lanes(columns - LANES);
    for (int64_t k = 0; k < count; k++) {
        const float *row = b + k * stride;
        _mm512_store_ps(out + k * TILE_COLUMNS, _mm512_maskz_loadu_ps(low, row));
        _mm512_store_ps(out + k * TILE_COLUMNS + LANES, _mm512_maskz_loadu_ps(high, row + LANES));
    }
}

/* The same where its columns lie as rows: 16 of them, or fewer, times `count`. */
AVX512 static void pack_columns(const float *b, int64_t stride, int64_t count, int64_t columns,
                                float *out)
{
    for (int64_t k = 0; k < count; k += LANES) {
        __m512i rows[LANES];
        int64_t length = least(count - k, LANES);
#pragma GCC unroll 16
        for (int64_t i = 0; i < LANES; i++)
            rows[i] = _mm512_maskz_loadu_epi32(i < columns ? lanes(length) : 0, b + i * stride + k);
        transpose(rows);
        for (int64_t i = 0; i < length; i++)
            _mm512_store_epi32(out + (k + i) * TILE_COLUMNS, rows[i]);
    }
}

static void pack_block(const struct matrix *b, const struct block *block, float *out)
{
    for (int64_t at = 0; at < block->columns; at += TILE_COLUMNS) {
        int64_t column = block->column + at, left = block->columns - at;
        float *panel = out + at * block->count;
        if (!b->transposed) {
            pack_rows((const float *)b->data + block->k * b->stride + column, b->stride,
                      block->count, left, panel);
            continue;
        }
        const float *rows = (const float *)b->data + column * b->stride + block->k;
        pack_columns(rows, b->stride, block->count, left, panel);
        pack_columns(rows + LANES * b->stride, b->stride, block->count, left - LANES,
                     panel + LANES);
    }
}

/* Where a's rows [row, ...) of the block begin. */
static const float *panel_start(const struct matrix *a, int64_t row, int64_t k)
{
    return (const float *)a->data + (a->transposed ? k * a->stride + row : row * a->stride + k);
}

AVX512 static void pack_panel(const struct matrix *a, int64_t row, int64_t rows,
                              const struct block *block, float *out)
{
    const float *from = panel_start(a, row, block->k);
    if (!a->transposed)
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * TILE_STRIDE, from + i * a->stride, (size_t)block->count * sizeof *out);
    else
        for (int64_t k = 0; k < block->count; k++)
            _mm512_store_ps(out + k * LANES,
                            _mm512_maskz_loadu_ps(lanes(rows), from + k * a->stride));
}

/* A panel of a, which is packed, times all of the block; asks for the next one. */
static void multiply_panel(const struct product *product, const struct block *block, int64_t row,
                           int64_t rows, const struct panel *next, const struct packed *packed)
{
    tile_fn *tile = avx512_tiles[product->a.transposed][rows];
    const float *bias = block->k == 0 ? product->bias : NULL;
    int64_t panels = (block->columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    for (int64_t panel = 0; panel < panels; panel++) {
        int64_t at = panel * TILE_COLUMNS;
        const struct tile_place place = {
            .c = (float *)product->c + row * product->stride + block->column + at,
            .stride = product->stride,
            .bias = bias ? bias + block->column + at : NULL,
            .add = product->add || block->k > 0,
            .columns = block->columns - at,
        };
        ask_for_panel(next, panel, panels);
        tile(packed->a, packed->b + at * block->count, block->count, &place);
    }
}

static void multiply_rows(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    struct packed *packed = room_find();
    int64_t length = equal_parts(product->inner, TILE_INNER, LANES);
    int64_t width = equal_parts(product->columns, COLUMNS, TILE_COLUMNS);
    for (int64_t column = 0; column < product->columns; column += width)
        for (int64_t k = 0; k < product->inner; k += length) {
            const struct block block = {k, least(product->inner - k, length), column,
                                        least(product->columns - column, width)};
            pack_block(&product->b, &block, packed->b);
            for (int64_t row = first; row < end; row += TILE_ROWS) {
                int64_t rows = least(end - row, TILE_ROWS);
                const struct panel next = {&product->a, ELEMENT_F32,
                                           row + rows,  least(end - row - rows, TILE_ROWS),
                                           k,           block.count};
                pack_panel(&product->a, row, rows, &block, packed->a);
                multiply_panel(product, &block, row, rows, &next, packed);
            }
        }
}

bool product_by_avx512(const struct product *product)
{
    if (!processor_has_avx512() || product->rows < LEAST)
        return false;
    parallel(product->rows, TILE_ROWS, multiply_rows, product);
    return true;
}
#endif
