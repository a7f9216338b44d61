/* avx512_bf16.c - packs and multiplies bf16 matrices, two products per lane; see avx512.h. */
#ifdef __x86_64__
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

/* Pack a matrix whose inner dimension runs along the rows in memory: transpose up to 16 rows of
 * `count` numbers. */
AVX512 static void turn_rows(const uint16_t *from, int64_t stride, int64_t count, int64_t columns,
                             uint32_t *out)
{
    for (int64_t k = 0; k < count; k += 2 * LANES) {
        __m512i rows[LANES];
        int64_t words = least((count - k + 1) / 2, LANES);
#pragma GCC unroll 16
        for (int64_t i = 0; i < LANES; i++)
            rows[i] = _mm512_maskz_loadu_epi16(i < columns ? halves(count - k) : 0,
                                               from + i * stride + k);
        transpose(rows);
        for (int64_t i = 0; i < words; i++)
            _mm512_store_epi32(out + (k / 2 + i) * TILE_COLUMNS, rows[i]);
    }
}

AVX512 static void pack_b(const struct panel *panel, uint32_t *out)
{
    const uint16_t *from = panel_start(panel);
    int64_t stride = panel->matrix->stride;
    if (panel->matrix->transposed) {
        pair_rows(from, stride, panel->count, panel->rows, TILE_COLUMNS, out);
        return;
    }
    turn_rows(from, stride, panel->count, panel->rows, out);
    turn_rows(from + LANES * stride, stride, panel->count, panel->rows - LANES, out + LANES);
}

AVX512 static void pack_a(const struct panel *panel, uint32_t *out)
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

const struct avx512_way avx512_bf16 = {2, pack_a, pack_b, TILES};
#endif
