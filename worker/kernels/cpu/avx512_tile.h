/* avx512_tile.h - the micro-kernels of matrix products, one for each number of rows of a tile.
 *
 * To be included after defining: TILE_TARGET, the target attribute; TILE_ELEMENT, the element of a
 * and b; TILE_STEP(sum, x, y), which adds to the sums of 16 lanes the products of the words x and
 * y; and TILE_NARROW(sum), which rounds sums to bf16, for products that may have such results. */
#include "worker/kernels/cpu/avx512.h"

#define TILE_INLINED TILE_TARGET static inline __attribute__((always_inline))
#define AHEAD INT64_C(24) /* rows of b that are prefetched before they are needed */

/* Write 16 numbers of a row of c, with the bias, and added to c if place->add. */
TILE_INLINED void write_vector(const struct tile_place *place, int64_t row, int64_t column,
                               __m512 sum)
{
    void *c = from_number(place->c, place->result, row * place->stride + column);
    __mmask16 there = lanes(place->columns - column);
    if (place->bias && TILE_ELEMENT == ELEMENT_F32)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, (const float *)place->bias + column));
    else if (place->bias)
        sum = _mm512_add_ps(sum, widen(there, (const uint16_t *)place->bias + column));
    if (TILE_ELEMENT == ELEMENT_F32 || place->result == ELEMENT_F32) {
        if (place->add)
            sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, c));
        _mm512_mask_storeu_ps(c, there, sum);
    } else {
        if (place->add)
            sum = _mm512_add_ps(sum, widen(there, c));
        _mm256_mask_storeu_epi16(c, there, TILE_NARROW(sum));
    }
}

TILE_INLINED void ask_for(const void *data)
{
    __builtin_prefetch(data);
    __builtin_prefetch((const char *)data + 64);
}

/* Word (i, k) of a is at i * row + k * step in its piece. */
TILE_INLINED void multiply(const uint32_t *a, const uint32_t *b, int64_t words,
                           const struct tile_place *place, int rows, int64_t row, int64_t step)
{
    __m512 sum[TILE_ROWS][2];
#pragma GCC unroll 14
    for (int64_t i = 0; i < rows; i++) {
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
        ask_for(from_number(place->c, place->result, i * place->stride));
    }
    for (; words > 0; words -= TILE_WORDS, a += PIECE_WORDS) {
        int64_t count = least(words, TILE_WORDS);
        for (int64_t k = 0; k < count; k++, b += TILE_COLUMNS) {
            __m512i low = _mm512_load_si512(b), high = _mm512_load_si512(b + LANES);
            ask_for(b + AHEAD * TILE_COLUMNS);
#pragma GCC unroll 14
            for (int64_t i = 0; i < rows; i++) {
                __m512i x = _mm512_set1_epi32((int)a[i * row + k * step]);
                sum[i][0] = TILE_STEP(sum[i][0], x, low);
                sum[i][1] = TILE_STEP(sum[i][1], x, high);
            }
        }
    }
#pragma GCC unroll 14
    for (int64_t i = 0; i < rows; i++) {
        write_vector(place, i, 0, sum[i][0]);
        write_vector(place, i, LANES, sum[i][1]);
    }
}

#define TILE(rows)                                                                                 \
    TILE_TARGET static void rows_##rows(const uint32_t *a, const uint32_t *b, int64_t words,       \
                                        const struct tile_place *place)                            \
    {                                                                                              \
        multiply(a, b, words, place, rows, TILE_STRIDE, 1);                                        \
    }                                                                                              \
    TILE_TARGET static void transposed_##rows(const uint32_t *a, const uint32_t *b, int64_t words, \
                                              const struct tile_place *place)                      \
    {                                                                                              \
        multiply(a, b, words, place, rows, 1, LANES);                                              \
    }

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)

/* An initializer for avx512_way.tiles. */
#define TILES                                                                                      \
    {                                                                                              \
        {NULL,   rows_1, rows_2,  rows_3,  rows_4,  rows_5,  rows_6, rows_7,                       \
         rows_8, rows_9, rows_10, rows_11, rows_12, rows_13, rows_14},                             \
            {NULL,          transposed_1,  transposed_2,  transposed_3,  transposed_4,             \
             transposed_5,  transposed_6,  transposed_7,  transposed_8,  transposed_9,             \
             transposed_10, transposed_11, transposed_12, transposed_13, transposed_14},           \
    }
