/* amx.c - products of bf16 by AMX, on matrices that we pack ourselves.
 *
 * A tile has 16 rows of 64 bytes: of a, 16 rows of 32 numbers; of b, 16 pairs along inner for 16
 * columns; of c, 16 x 16 sums in f32. a and b are packed in panels of two tiles' rows or columns,
 * and of b as much as the L2 cache holds, so that 4 loads feed 4 products into 4 tiles of c. Each
 * number of c is summed over inner in order, and threads share the rows of c in whole panels: the
 * number of threads does not change a bit.
 *
 * GFLOP/s of one core of a Xeon for (rows x inner) (inner x columns), the best of many runs,
 * alternating with oneDNN, while the core's other hyperthread was busy:
 *     4096 x  384x1152  384x1536  1536x384   of an input 1152x384  of a weight 384x1536
 *                  820       942       995                   1077                   784
 *     oneDNN       655       670       842                    925                   693
 * Attention: 64 x 64x64 621 (oneDNN 357), 64 x 256x64 410 (635), keys 256 x 64x64 450 (304). */
#include "worker/kernels/cpu/product.h"

#ifdef __x86_64__
#include "worker/kernels/cpu/avx512.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/processor.h"

#include <stdalign.h>

/* Rows of a panel of a, columns of a panel of b, and numbers of each in a tile. */
#define SIDE INT64_C(32)
#define TILE (SIDE * LANES)    /* numbers of a tile of a or b */
#define PIECE INT64_C(4096)    /* longest part of inner that is packed at once */
#define PIECE_F32 INT64_C(512) /* the same if sums may be kept in c */
/* Room for b, in numbers. */
#define PACKED_B (SCRATCH_BYTES / (int64_t)sizeof(uint16_t) - PIECE * SIDE)
#define AMX __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))

_Static_assert(PACKED_B >= PIECE * SIDE, "a thread's room for a panel of b");

/* The part of b that is packed at once: [k, k + count) of inner, and some columns. */
struct block {
    int64_t k, count, column, columns;
};

/* Pack a tile of up to 16 rows of a, or columns of b (`sides`), and up to 32 numbers along inner.
 * `along`: inner runs along the rows in memory, otherwise across them. `turn`: transpose the
 * words. */
AVX512_INLINED void pack_tile(const uint16_t *from, int64_t stride, int64_t sides, int64_t count,
                              bool along, bool turn, uint16_t *out)
{
    __m512i rows[LANES];
    __mmask16 there = lanes(sides);
#pragma GCC unroll 16
    for (int64_t i = 0; i < LANES; i++)
        if (along)
            rows[i] = _mm512_maskz_loadu_epi16(i < sides ? halves(count) : 0, from + i * stride);
        else
            rows[i] = interleave(from + 2 * i * stride, from + (2 * i + 1) * stride,
                                 2 * i < count ? there : 0, 2 * i + 1 < count ? there : 0);
    if (turn)
        transpose(rows);
#pragma GCC unroll 16
    for (int64_t i = 0; i < LANES; i++)
        _mm512_store_epi32(out + i * SIDE, rows[i]);
}

/* Pack two tiles that are next to each other. */
AVX512_INLINED void pack_tiles(const uint16_t *from, int64_t stride, int64_t sides, int64_t count,
                               bool along, bool turn, uint16_t *out)
{
    int64_t next = along ? LANES * stride : LANES;
    pack_tile(from, stride, sides, count, along, turn, out);
    pack_tile(from + next, stride, sides - LANES, count, along, turn, out + TILE);
}

/* Dispatch to constants for the four layouts of a and b. */
AVX512_INLINED void pack_either(const uint16_t *from, int64_t stride, int64_t sides, int64_t count,
                                bool along, bool is_b, uint16_t *out)
{
    if (along && is_b)
        pack_tiles(from, stride, sides, count, true, true, out);
    else if (along)
        pack_tiles(from, stride, sides, count, true, false, out);
    else if (is_b)
        pack_tiles(from, stride, sides, count, false, false, out);
    else
        pack_tiles(from, stride, sides, count, false, true, out);
}

/* Pack a panel: `sides` rows of a, or columns of b, from `side` on. */
AVX512 static void pack_panel(const struct matrix *matrix, bool is_b, int64_t side, int64_t sides,
                              int64_t k, int64_t count, uint16_t *out)
{
    bool along = is_b == matrix->transposed;
    const uint16_t *from = (const uint16_t *)matrix->data +
                           (along ? side * matrix->stride + k : k * matrix->stride + side);
    for (int64_t at = 0; at < count; at += SIDE, out += 2 * TILE) {
        if (sides >= SIDE && count - at >= SIDE) /* constants: no masks are needed */
            pack_either(from, matrix->stride, SIDE, SIDE, along, is_b, out);
        else
            pack_either(from, matrix->stride, sides, count - at, along, is_b, out);
        from += along ? SIDE : SIDE * matrix->stride;
    }
}

/* Compute 32 x 32 numbers of c in f32, or add to them. */
AMX static void multiply_tiles(const uint16_t *a, const uint16_t *b, int64_t count, float *c,
                               int64_t stride, bool add)
{
    int64_t bytes = stride * (int64_t)sizeof *c, line = 64;
    __asm__ volatile("" ::: "memory"); /* what was packed, and c, must be in memory */
    if (add) {
        _tile_loadd(0, c, bytes);
        _tile_loadd(1, c + LANES, bytes);
        _tile_loadd(2, c + LANES * stride, bytes);
        _tile_loadd(3, c + LANES * stride + LANES, bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < count; k += SIDE, a += 2 * TILE, b += 2 * TILE) {
        _tile_loadd(4, a, line);
        _tile_loadd(6, b, line);
        _tile_loadd(7, b + TILE, line);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + TILE, line);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, bytes);
    _tile_stored(1, c + LANES, bytes);
    _tile_stored(2, c + LANES * stride, bytes);
    _tile_stored(3, c + LANES * stride + LANES, bytes);
}

/* A part of c, at most 32 x 32, with its sums. */
struct part {
    alignas(64) float sums[SIDE * SIDE];
    char *c;
    const uint16_t *bias;  /* NULL: none */
    int64_t rows, columns; /* columns 0: unused, or written already */
};

/* The state of one thread. Reading back what tiles have just stored is slow, so the sums of a part
 * are written to c only after those of the next part have been made. */
struct work {
    const struct product *product;
    const struct block *block;
    uint16_t *a, *b; /* packed */
    struct part parts[2];
    int turn; /* index of the part to use next */
};

/* Write 16 columns of a part from `column` on, with the bias, and added to c if the product
 * adds. */
AMX static void end_columns(const struct product *product, const struct part *part, int64_t column)
{
    __mmask16 there = lanes(part->columns - column);
    const __m512 bias = part->bias ? widen(there, part->bias + column) : _mm512_setzero_ps();
    for (int64_t row = 0; row < part->rows; row++) {
        void *c = from_number(part->c, product->result, row * product->stride + column);
        __m512 sum = _mm512_add_ps(_mm512_load_ps(part->sums + row * SIDE + column), bias);
        if (product->result == ELEMENT_F32) {
            if (product->add)
                sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, c));
            _mm512_mask_storeu_ps(c, there, sum);
        } else {
            if (product->add)
                sum = _mm512_add_ps(sum, widen(there, c));
            _mm256_mask_storeu_epi16(c, there, (__m256i)_mm512_cvtneps_pbh(sum));
        }
    }
}

static void end_part(const struct product *product, struct part *part)
{
    for (int64_t column = 0; column < part->columns; column += LANES)
        end_columns(product, part, column);
    part->columns = 0;
}

/* Compute a part through separate sums, and write the previous part to c. */
static void multiply_part(struct work *work, const uint16_t *b, struct part *part)
{
    const struct product *product = work->product;
    for (int64_t i = 0; i < part->rows; i++)
        __builtin_prefetch(from_number(part->c, product->result, i * product->stride), 1);
    multiply_tiles(work->a, b, work->block->count, part->sums, SIDE, false);
    work->turn = !work->turn;
    end_part(product, &work->parts[work->turn]);
}

/* Multiply a packed panel of a with the whole block, while prefetching the next panel. */
static void multiply_panel(struct work *work, int64_t row, int64_t rows, const struct panel *next)
{
    const struct product *product = work->product;
    const struct block *block = work->block;
    int64_t length = (block->count + SIDE - 1) / SIDE * SIDE;
    const uint16_t *b = work->b;
    for (int64_t at = 0; at < block->columns; at += SIDE, b += SIDE * length) {
        ask_for_panel(next, at / SIDE, (block->columns + SIDE - 1) / SIDE);
        int64_t column = block->column + at, columns = least(block->columns - at, SIDE);
        char *c = from_number(product->c, product->result, row * product->stride + column);
        if (product->result == ELEMENT_F32 && !product->bias && rows == SIDE && columns == SIDE) {
            multiply_tiles(work->a, b, block->count, (float *)(void *)c, product->stride,
                           product->add);
            continue;
        }
        struct part *part = &work->parts[work->turn];
        part->c = c;
        part->bias = product->bias ? (const uint16_t *)product->bias + column : NULL;
        part->rows = rows;
        part->columns = columns;
        multiply_part(work, b, part);
    }
}

static void multiply_block(const struct product *product, const struct block *block, int64_t first,
                           int64_t end)
{
    uint16_t *room = scratch_find();
    struct work work;
    work.product = product;
    work.block = block;
    work.a = room;
    work.b = room + PIECE * SIDE;
    work.parts[0].columns = work.parts[1].columns = 0;
    work.turn = 0;
    int64_t length = (block->count + SIDE - 1) / SIDE * SIDE;
    for (int64_t at = 0; at < block->columns; at += SIDE)
        pack_panel(&product->b, true, block->column + at, block->columns - at, block->k,
                   block->count, work.b + at * length);
    for (int64_t row = first; row < end; row += SIDE) {
        int64_t rows = least(end - row, SIDE);
        pack_panel(&product->a, false, row, rows, block->k, block->count, work.a);
        const struct panel next = {&product->a, ELEMENT_BF16,
                                   row + rows,  least(end - row - rows, SIDE),
                                   block->k,    block->count};
        multiply_panel(&work, row, rows, &next);
    }
    end_part(product, &work.parts[!work.turn]);
}

AMX static void configure(void)
{
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } eight_whole = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&eight_whole);
}

AMX static void release(void)
{
    _tile_release();
}

static void multiply_rows(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    int64_t most = product->result == ELEMENT_F32 ? PIECE_F32 : PIECE;
    int64_t length = equal_parts(product->inner, most, SIDE);
    int64_t width = equal_parts(product->columns, PACKED_B / length / SIDE * SIDE, SIDE);
    struct product piece = *product;
    configure();
    for (int64_t k = 0; k < product->inner; k += length) {
        for (int64_t column = 0; column < product->columns; column += width) {
            const struct block block = {k, least(product->inner - k, length), column,
                                        least(product->columns - column, width)};
            multiply_block(&piece, &block, first, end);
        }
        piece.add = true;
        piece.bias = NULL;
    }
    release();
}

bool product_by_amx(const struct product *product)
{
    if (product->element != ELEMENT_BF16 || !processor_has(ISA_AMX) ||
        (product->result != ELEMENT_F32 && product->inner > PIECE))
        return false;
    parallel(product->rows, SIDE, multiply_rows, product);
    return true;
}
#endif
