/* avx512.c - our own matrix products on AVX-512: f32, and bf16 on processors that multiply it.
 *
 * A block of b, as large as the L2 cache holds, is packed in panels of 32 columns. Every panel of
 * 14 rows of a is then packed into the L1 cache and multiplied with the block (Goto and van de
 * Geijn, Anatomy of High-Performance Matrix Multiplication, 2008, with a and b exchanged). Each
 * number of c is summed over inner in order, in pieces that depend on the size of inner alone, so
 * the number of threads does not change a bit. GFLOP/s: product.c. */
#include "worker/kernels/cpu/product.h"

#ifdef __x86_64__
#include "worker/kernels/cpu/avx512.h"
#include "worker/kernels/cpu/processor.h"

#define LEAST 16 /* rows for which packing b pays */
/* Pieces of a panel of a, for sums that may not be kept in c because they are rounded once: this is
 * enough for 4096 numbers of bf16. */
#define PIECES 6

struct packed {
    uint32_t a[PIECES * PIECE_WORDS];
    uint32_t b[SCRATCH_BYTES / sizeof(uint32_t) - PIECES * PIECE_WORDS];
};

#define WORDS_MOST (PIECES * TILE_WORDS)
#define B_WORDS ((int64_t)(sizeof((struct packed *)0)->b / sizeof(uint32_t)))

_Static_assert(B_WORDS >= WORDS_MOST * TILE_COLUMNS, "a thread's room for a panel of b");

/* The part of b that is packed at once: [k, k + count) of inner, also in words, and some
 * columns. */
struct block {
    int64_t k, count, words, column, columns;
};

/* How to handle numbers of one element. */
struct avx512_way {
    int64_t numbers; /* per word */
    /* Pack up to 14 rows of a. */
    void (*pack_a)(const struct panel *panel, uint32_t *out);
    /* Pack up to 32 columns of b, given as the panel's rows. Missing columns are filled with 0. */
    void (*pack_b)(const struct panel *panel, uint32_t *out);
    /* Micro-kernels: [a is transposed][rows, 1 to TILE_ROWS]. */
    tile_fn *tiles[2][TILE_ROWS + 1];
};

/* Up to 16 of the panel's rows become columns of words. */
AVX512 static void turn_rows(const struct panel *panel, int64_t first, uint32_t *out)
{
    int64_t size = (int64_t)element_size(panel->element), word = sizeof *out;
    int64_t stride = panel->matrix->stride * size, bytes = panel->count * size;
    const char *from = (const char *)panel_start(panel) + first * stride;
    for (int64_t at = 0; at < bytes; at += LANES * word) {
        __m512i rows[LANES];
        int64_t left = least(bytes - at, LANES * word);
        __mmask64 there = ~UINT64_C(0) >> (LANES * word - left);
#pragma GCC unroll 16
        for (int64_t i = 0; i < LANES; i++)
            rows[i] = _mm512_maskz_loadu_epi8(first + i < panel->rows ? there : 0,
                                              from + i * stride + at);
        transpose(rows);
        for (int64_t i = 0; i < (left + word - 1) / word; i++)
            _mm512_store_epi32(out + (at / word + i) * TILE_COLUMNS, rows[i]);
    }
}

/* Packs up to 32 columns of b that lie as rows in memory, of either element; what is missing
 * becomes 0. */
static void turn_panel(const struct panel *panel, uint32_t *out)
{
    turn_rows(panel, 0, out);
    turn_rows(panel, LANES, out + LANES);
}

/* ---- f32 ---- */

#define TILE_NAMED(name) f32_##name
#define TILE_TARGET AVX512
#define TILE_ELEMENT ELEMENT_F32
#define TILE_STEP(sum, x, y) _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), sum)
#define TILE_NARROW(sum) _mm256_setzero_si256() /* unused: products of f32 are f32 */
#include "worker/kernels/cpu/avx512_tile.h"

/* Pack a matrix whose inner dimension runs across the rows in memory: each word is copied from a
 * row. */
AVX512_INLINED void copy_rows(const float *from, int64_t stride, int64_t count, int64_t columns,
                              int64_t length, uint32_t *out)
{
    for (int64_t k = 0; k < count; k++)
        for (int64_t at = 0; at < length; at += LANES)
            _mm512_store_ps(out + k * length + at,
                            _mm512_maskz_loadu_ps(lanes(columns - at), from + k * stride + at));
}

AVX512 static void f32_pack_b(const struct panel *panel, uint32_t *out)
{
    const float *from = panel_start(panel);
    if (panel->matrix->transposed)
        copy_rows(from, panel->matrix->stride, panel->count, panel->rows, TILE_COLUMNS, out);
    else
        turn_panel(panel, out);
}

AVX512 static void f32_pack_a(const struct panel *panel, uint32_t *out)
{
    const float *from = panel_start(panel);
    int64_t stride = panel->matrix->stride;
    if (panel->matrix->transposed)
        copy_rows(from, stride, panel->count, panel->rows, LANES, out);
    else
        for (int64_t i = 0; i < panel->rows; i++)
            memcpy(out + i * TILE_STRIDE, from + i * stride, (size_t)panel->count * sizeof *from);
}

static const struct avx512_way avx512_f32 = {1, f32_pack_a, f32_pack_b, TILES};
#undef TILE_NAMED
#undef TILE_TARGET
#undef TILE_ELEMENT
#undef TILE_STEP
#undef TILE_NARROW

/* ---- bf16, two products per lane ---- */

#define TILE_NAMED(name) bf16_##name
#define TILE_TARGET __attribute__((target("arch=x86-64-v4,avx512bf16")))
#define TILE_ELEMENT ELEMENT_BF16
#define TILE_STEP(sum, x, y) _mm512_dpbf16_ps(sum, (__m512bh)(x), (__m512bh)(y))
#define TILE_NARROW(sum) ((__m256i)_mm512_cvtneps_pbh(sum))
#include "worker/kernels/cpu/avx512_tile.h"

/* Pack a matrix whose inner dimension runs across the rows in memory: each word takes a number from
 * each of two rows. */
AVX512_INLINED void pair_rows(const uint16_t *from, int64_t stride, int64_t count, int64_t columns,
                              int64_t length, uint32_t *out)
{
    for (int64_t k = 0; k < count; k += 2, out += length)
        for (int64_t at = 0; at < length; at += LANES) {
            const uint16_t *row = from + k * stride + at;
            __mmask16 there = lanes(columns - at);
            _mm512_store_epi32(out + at,
                               interleave(row, row + stride, there, k + 1 < count ? there : 0));
        }
}

AVX512 static void bf16_pack_b(const struct panel *panel, uint32_t *out)
{
    const uint16_t *from = panel_start(panel);
    if (panel->matrix->transposed)
        pair_rows(from, panel->matrix->stride, panel->count, panel->rows, TILE_COLUMNS, out);
    else
        turn_panel(panel, out);
}

AVX512 static void bf16_pack_a(const struct panel *panel, uint32_t *out)
{
    const uint16_t *from = panel_start(panel);
    int64_t stride = panel->matrix->stride, count = panel->count;
    if (panel->matrix->transposed) {
        pair_rows(from, stride, count, panel->rows, LANES, out);
        return;
    }
    for (int64_t i = 0; i < panel->rows; i++) {
        out[i * TILE_STRIDE + count / 2] = 0; /* if count is odd, half of the last word must be 0 */
        memcpy(out + i * TILE_STRIDE, from + i * stride, (size_t)count * sizeof *from);
    }
}

static const struct avx512_way avx512_bf16 = {2, bf16_pack_a, bf16_pack_b, TILES};
#undef TILE_NAMED
#undef TILE_TARGET
#undef TILE_ELEMENT
#undef TILE_STEP
#undef TILE_NARROW

static const struct avx512_way *const ways[ELEMENTS] = {&avx512_f32, &avx512_bf16};

static void pack_block(const struct product *product, const struct block *block, uint32_t *out)
{
    const struct matrix turned = {product->b.data, product->b.stride, !product->b.transposed};
    for (int64_t at = 0; at < block->columns; at += TILE_COLUMNS)
        ways[product->element]->pack_b(&(struct panel){&turned, product->element,
                                                       block->column + at, block->columns - at,
                                                       block->k, block->count},
                                       out + at * block->words);
}

static void pack_panel(const struct panel *panel, uint32_t *out)
{
    const struct avx512_way *way = ways[panel->element];
    int64_t most = TILE_WORDS * way->numbers;
    for (int64_t at = 0; at < panel->count; at += most, out += PIECE_WORDS) {
        struct panel piece = *panel;
        piece.k += at;
        piece.count = least(panel->count - at, most);
        way->pack_a(&piece, out);
    }
}

/* Multiply a packed panel of a with the whole block, while prefetching the next panel. */
static void multiply_panel(const struct product *product, const struct block *block,
                           const struct panel *panel, const struct panel *next,
                           const struct packed *packed)
{
    tile_fn *tile = ways[product->element]->tiles[product->a.transposed][panel->rows];
    int64_t panels = (block->columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    for (int64_t i = 0; i < panels; i++) {
        int64_t at = i * TILE_COLUMNS, column = block->column + at;
        const struct tile_place place = {
            .c = from_number(product->c, product->result, panel->row * product->stride + column),
            .stride = product->stride,
            .bias = product->bias && block->k == 0
                        ? from_number(product->bias, product->element, column)
                        : NULL,
            .result = product->result,
            .add = product->add || block->k > 0,
            .columns = block->columns - at,
        };
        ask_for_panel(next, i, panels);
        tile(packed->a, packed->b + at * block->words, block->words, &place);
    }
}

static void multiply_block(const struct product *product, const struct block *block, int64_t first,
                           int64_t end, struct packed *packed)
{
    pack_block(product, block, packed->b);
    struct panel panel = {&product->a, product->element, first, 0, block->k, block->count};
    for (panel.rows = least(end - first, TILE_ROWS); panel.rows > 0;) {
        struct panel next = panel;
        next.row += panel.rows;
        next.rows = least(end - next.row, TILE_ROWS);
        pack_panel(&panel, packed->a);
        multiply_panel(product, block, &panel, &next, packed);
        panel = next;
    }
}

/* The inner dimension is divided only if intermediate sums can be kept in c unrounded. */
static void multiply_rows(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    int64_t numbers = ways[product->element]->numbers;
    int64_t most = numbers * (product->result == ELEMENT_F32 ? TILE_WORDS : WORDS_MOST);
    int64_t length = equal_parts(product->inner, most, numbers * LANES);
    int64_t width = equal_parts(
        product->columns, B_WORDS / (length / numbers) / TILE_COLUMNS * TILE_COLUMNS, TILE_COLUMNS);
    for (int64_t column = 0; column < product->columns; column += width)
        for (int64_t k = 0; k < product->inner; k += length) {
            struct block block = {.k = k,
                                  .count = least(product->inner - k, length),
                                  .column = column,
                                  .columns = least(product->columns - column, width)};
            block.words = (block.count + numbers - 1) / numbers;
            multiply_block(product, &block, first, end, scratch_find());
        }
}

static bool is_done_here(const struct product *product)
{
    if (product->element == ELEMENT_F32)
        return processor_has(ISA_AVX512);
    return processor_has(ISA_AVX512_BF16) &&
           (product->result == ELEMENT_F32 || product->inner <= 2 * WORDS_MOST);
}

bool product_by_avx512(const struct product *product)
{
    if (product->rows < LEAST || !is_done_here(product))
        return false;
    parallel(product->rows, TILE_ROWS, multiply_rows, product);
    return true;
}
#endif
