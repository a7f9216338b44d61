/* avx512.c - our own matrix products on AVX-512: f32, and bf16 on processors that multiply it.
 *
 * A block of b, as large as the L2 cache holds, is packed in panels of 32 columns. Every panel of
 * 14 rows of a is then packed into the L1 cache and multiplied with the block (Goto and van de
 * Geijn, Anatomy of High-Performance Matrix Multiplication, 2008, with a and b exchanged). Each
 * number of c is summed over inner in order, in pieces that depend on the size of inner alone, so
 * the number of threads does not change a bit. GFLOP/s: sgemm.c. */
#include "worker/kernels/cpu/product.h"

#ifdef __x86_64__
#include "worker/kernels/cpu/avx512.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/processor.h"
#include "worker/kernels/cpu/room.h"

#define LEAST 16 /* rows for which packing b pays */
/* Pieces of a panel of a, for sums that may not be kept in c because they are rounded once: this is
 * enough for 4096 numbers of bf16. */
#define PIECES 6

struct packed {
    uint32_t a[PIECES * PIECE_WORDS];
    uint32_t b[ROOM_BYTES / sizeof(uint32_t) - PIECES * PIECE_WORDS];
};

#define WORDS_MOST (PIECES * TILE_WORDS)
#define B_WORDS ((int64_t)(sizeof((struct packed *)0)->b / sizeof(uint32_t)))

_Static_assert(B_WORDS >= WORDS_MOST * TILE_COLUMNS, "a thread's room for a panel of b");

/* The part of b that is packed at once: [k, k + count) of inner, also in words, and some
 * columns. */
struct block {
    int64_t k, count, words, column, columns;
};

static const struct avx512_way *const ways[ELEMENTS] = {&avx512_f32, &avx512_bf16};

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

void avx512_turn_panel(const struct panel *panel, uint32_t *out)
{
    turn_rows(panel, 0, out);
    turn_rows(panel, LANES, out + LANES);
}

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
            multiply_block(product, &block, first, end, room_find());
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
