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

AVX512 static void pack_b(const struct panel *panel, uint32_t *out)
{
    const uint16_t *from = panel_start(panel);
    if (panel->matrix->transposed)
        pair_rows(from, panel->matrix->stride, panel->count, panel->rows, TILE_COLUMNS, out);
    else
        avx512_turn_panel(panel, out);
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
