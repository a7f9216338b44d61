/* avx512_f32.c - packs and multiplies f32 matrices; see avx512.h. */
#ifdef __x86_64__
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

AVX512 static void pack_b(const struct panel *panel, uint32_t *out)
{
    const float *from = panel_start(panel);
    if (panel->matrix->transposed)
        copy_rows(from, panel->matrix->stride, panel->count, panel->rows, TILE_COLUMNS, out);
    else
        avx512_turn_panel(panel, out);
}

AVX512 static void pack_a(const struct panel *panel, uint32_t *out)
{
    const float *from = panel_start(panel);
    int64_t stride = panel->matrix->stride;
    if (panel->matrix->transposed)
        copy_rows(from, stride, panel->count, panel->rows, LANES, out);
    else
        for (int64_t i = 0; i < panel->rows; i++)
            memcpy(out + i * TILE_STRIDE, from + i * stride, (size_t)panel->count * sizeof *from);
}

const struct avx512_way avx512_f32 = {1, pack_a, pack_b, TILES};
#endif
