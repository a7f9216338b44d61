/* avx512.h - what our own matrix products on AVX-512 share: avx512*.c, amx*.c. */
#ifndef WORKER_KERNELS_CPU_AVX512_H
#define WORKER_KERNELS_CPU_AVX512_H

#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#include <immintrin.h>
#include <string.h>

#define LANES INT64_C(16) /* numbers of 32 bits in a vector */
#define AVX512 __attribute__((target("arch=x86-64-v4")))
#define AVX512_INLINED AVX512 static inline __attribute__((always_inline))

/* The first `count` lanes: none below 1, all above 15. */
static inline __mmask16 lanes(int64_t count)
{
    return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* `whole` in equal parts that are multiples of `unit`, the last one less: the fewest that are no
 * larger than `most`, itself a multiple. Returns their size. */
static inline int64_t equal_parts(int64_t whole, int64_t most, int64_t unit)
{
    int64_t parts = (whole + most - 1) / most;
    return ((whole + parts - 1) / parts + unit - 1) / unit * unit;
}

/* Rows become columns. Of a number's place in 8 bits, its row's before its column's, each round
 * turns them by one. */
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

/* Rows [row, row + rows) of a matrix, of what is contracted on [k, k + count). */
struct panel {
    const struct matrix *matrix;
    enum element element;
    int64_t row, rows, k, count;
};

/* Asks for part `part` of `parts` of it, into the second cache. */
static inline void ask_for_panel(const struct panel *panel, int64_t part, int64_t parts)
{
    const struct matrix *matrix = panel->matrix;
    bool across = matrix->transposed;
    int64_t lines = across ? panel->count : panel->rows,
            step = 64 / (int64_t)element_size(panel->element);
    int64_t length = across ? panel->rows : panel->count;
    int64_t start =
        across ? panel->k * matrix->stride + panel->row : panel->row * matrix->stride + panel->k;
    for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; i++)
        for (int64_t at = 0; at < length; at += step)
            __builtin_prefetch(
                from_number(matrix->data, panel->element, start + i * matrix->stride + at), 0, 2);
}

#endif
