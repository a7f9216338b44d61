/* avx512.h - shared by our own matrix products on AVX-512: avx512.c and amx.c.
 *
 * In the comments, "inner" is the contracted dimension of c (rows, columns) = a (rows, inner) b
 * (inner, columns). */
#ifndef WORKER_KERNELS_CPU_AVX512_H
#define WORKER_KERNELS_CPU_AVX512_H

#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#include <immintrin.h>
#include <string.h>

#define LANES INT64_C(16) /* 32-bit numbers in a vector */
#define AVX512 __attribute__((target("arch=x86-64-v4")))
#define AVX512_INLINED AVX512 static inline __attribute__((always_inline))

/* The part of c whose sums are held in registers. */
#define TILE_ROWS INT64_C(14)
#define TILE_COLUMNS INT64_C(32)

/* Packed matrices consist of 32-bit words: one f32 number, or two bf16 numbers that are consecutive
 * along inner. b is packed in panels of 32 columns: `words` rows of 32 words. a is packed in pieces
 * of TILE_WORDS words for each of up to 14 rows; pieces begin PIECE_WORDS apart, and their rows
 * TILE_STRIDE apart. If inner runs across the rows in memory (a is transposed), a piece has for
 * each word the words of 16 rows instead. */
#define TILE_WORDS INT64_C(384)
/* Not a power of 2, so that rows fall into different cache sets. */
#define TILE_STRIDE (TILE_WORDS + 16)
#define PIECE_WORDS (LANES * TILE_STRIDE)

/* Where a tile writes its part of c. */
struct tile_place {
    void *c;
    int64_t stride;
    const void *bias;    /* of the product's element, at the part's first column; NULL: none */
    enum element result; /* element of c */
    bool add;            /* add to what c holds */
    int64_t columns;     /* that exist; others are not touched */
};

/* Compute c = a b + bias, or add that to c, for one tile of packed matrices, which are aligned to
 * cache lines. Each number of c is a single sum over inner, in order. */
typedef void tile_fn(const uint32_t *a, const uint32_t *b, int64_t words,
                     const struct tile_place *place);

/* Part of a matrix: its rows [row, row + rows), and [k, k + count) of inner. */
struct panel {
    const struct matrix *matrix;
    enum element element;
    int64_t row, rows, k, count;
};

/* Mask of the first `count` lanes: none for count < 1, all for count > 15. */
static inline __mmask16 lanes(int64_t count)
{
    return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

/* The same for 16-bit halves of lanes. */
static inline __mmask32 halves(int64_t count)
{
    return count >= 2 * LANES ? 0xffffffff : count <= 0 ? 0 : (1u << count) - 1;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Divide `whole` into equal parts, multiples of `unit` (the last may be shorter): the fewest parts
 * that are no larger than `most`, itself a multiple of `unit`. Returns their size. */
static inline int64_t equal_parts(int64_t whole, int64_t most, int64_t unit)
{
    int64_t parts = (whole + most - 1) / most;
    return ((whole + parts - 1) / parts + unit - 1) / unit * unit;
}

/* Transpose a 16 x 16 matrix of 32-bit words. Write a word's place as 8 bits, its row before its
 * column: each of the four rounds rotates these bits by one. */
AVX512_INLINED void transpose(__m512i rows[LANES])
{
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(LANES / 2));
#pragma GCC unroll 4
    for (int round = 0; round < 4; round++) {
        __m512i before[LANES];
        memcpy(before, rows, sizeof before);
#pragma GCC unroll 8
        for (int64_t i = 0; i < LANES / 2; i++) {
            __m512i upper = before[i], lower = before[i + LANES / 2];
            rows[2 * i] = _mm512_permutex2var_epi32(upper, first, lower);
            rows[2 * i + 1] = _mm512_permutex2var_epi32(upper, second, lower);
        }
    }
}

/* Interleave two rows of bf16: the first 16 numbers of each in turn, as far as the masks have
 * them. */
AVX512_INLINED __m512i interleave(const uint16_t *first, const uint16_t *second, __mmask16 there,
                                  __mmask16 there_too)
{
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, first));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there_too, second));
    return _mm512_or_epi32(low, _mm512_slli_epi32(high, LANES));
}

/* Convert 16 numbers from bf16 to f32. */
AVX512_INLINED __m512 widen(__mmask16 there, const void *narrow)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, narrow));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, LANES));
}

/* Address of the panel's first number. */
static inline const void *panel_start(const struct panel *panel)
{
    const struct matrix *matrix = panel->matrix;
    return from_number(matrix->data, panel->element,
                       matrix->transposed ? panel->k * matrix->stride + panel->row
                                          : panel->row * matrix->stride + panel->k);
}

/* Prefetch part `part` of `parts` of the panel into the L2 cache. */
static inline void ask_for_panel(const struct panel *panel, int64_t part, int64_t parts)
{
    const struct matrix *matrix = panel->matrix;
    bool across = matrix->transposed;
    int64_t lines = across ? panel->count : panel->rows,
            step = 64 / (int64_t)element_size(panel->element);
    int64_t length = across ? panel->rows : panel->count;
    const void *start = panel_start(panel);
    for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; i++)
        for (int64_t at = 0; at < length; at += step)
            __builtin_prefetch(from_number(start, panel->element, i * matrix->stride + at), 0, 2);
}

#endif
