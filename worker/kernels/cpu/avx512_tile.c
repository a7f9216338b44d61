/* avx512_tile.c - 28 sums of 16 numbers stay in registers; see avx512_tile.h. */
#include "worker/kernels/cpu/avx512_tile.h"

#ifdef __x86_64__
#include "worker/kernels/cpu/avx512.h"

#define AHEAD INT64_C(24) /* rows of b, that are asked for before they are needed */

AVX512_INLINED void write_vector(const struct tile_place *place, int64_t row, int64_t column,
                                 __m512 sum)
{
    float *c = place->c + row * place->stride + column;
    __mmask16 there = lanes(place->columns - column);
    if (place->bias)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, place->bias + column));
    if (place->add)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, c));
    _mm512_mask_storeu_ps(c, there, sum);
}

AVX512_INLINED void ask_for(const float *data)
{
    __builtin_prefetch(data);
    __builtin_prefetch(data + LANES);
}

/* Number (i, k) of a is at i row + k step. */
AVX512_INLINED void multiply(const float *a, const float *b, int64_t count,
                             const struct tile_place *place, int rows, int64_t row, int64_t step)
{
    __m512 sum[TILE_ROWS][2];
#pragma GCC unroll 14
    for (int64_t i = 0; i < rows; i++) {
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
        ask_for(place->c + i * place->stride);
    }
    for (int64_t k = 0; k < count; k++) {
        const float *of = b + k * TILE_COLUMNS;
        __m512 low = _mm512_load_ps(of), high = _mm512_load_ps(of + LANES);
        ask_for(of + AHEAD * TILE_COLUMNS);
#pragma GCC unroll 14
        for (int64_t i = 0; i < rows; i++) {
            __m512 x = _mm512_set1_ps(a[i * row + k * step]);
            sum[i][0] = _mm512_fmadd_ps(x, low, sum[i][0]);
            sum[i][1] = _mm512_fmadd_ps(x, high, sum[i][1]);
        }
    }
#pragma GCC unroll 14
    for (int64_t i = 0; i < rows; i++) {
        write_vector(place, i, 0, sum[i][0]);
        write_vector(place, i, LANES, sum[i][1]);
    }
}

#define TILE(rows)                                                                                 \
    AVX512 static void rows_##rows(const float *a, const float *b, int64_t count,                  \
                                   const struct tile_place *place)                                 \
    {                                                                                              \
        multiply(a, b, count, place, rows, TILE_STRIDE, 1);                                        \
    }                                                                                              \
    AVX512 static void transposed_##rows(const float *a, const float *b, int64_t count,            \
                                         const struct tile_place *place)                           \
    {                                                                                              \
        multiply(a, b, count, place, rows, 1, LANES);                                              \
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

tile_fn *const avx512_tiles[2][TILE_ROWS + 1] = {
    {NULL, rows_1, rows_2, rows_3, rows_4, rows_5, rows_6, rows_7, rows_8, rows_9, rows_10, rows_11,
     rows_12, rows_13, rows_14},
    {NULL, transposed_1, transposed_2, transposed_3, transposed_4, transposed_5, transposed_6,
     transposed_7, transposed_8, transposed_9, transposed_10, transposed_11, transposed_12,
     transposed_13, transposed_14},
};
#endif
