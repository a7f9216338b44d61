/* avx512_tile.h - the micro-kernels of matrix products, one for each number of rows of a tile.
 *
 * To be included after defining: TILE_NAMED(name), a name for this element; TILE_TARGET, the target
 * attribute; TILE_ELEMENT, the element of a and b; TILE_STEP(sum, x, y), which adds to the sums of
 * 16 lanes the products of the words x and y; and TILE_NARROW(sum), which rounds sums to bf16, for
 * products that may have such results. */
#define TILE_INLINED TILE_TARGET static inline __attribute__((always_inline))
#define AHEAD INT64_C(24) /* rows of b that are prefetched before they are needed */

/* Write 16 numbers of a row of c, with the bias, and added to c if place->add. */
TILE_INLINED void TILE_NAMED(write_vector)(const struct tile_place *place, int64_t row,
                                           int64_t column, __m512 sum)
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

TILE_INLINED void TILE_NAMED(ask_for)(const void *data)
{
    __builtin_prefetch(data);
    __builtin_prefetch((const char *)data + 64);
}

/* Word (i, k) of a is at i * row + k * step in its piece. */
TILE_INLINED void TILE_NAMED(multiply)(const uint32_t *a, const uint32_t *b, int64_t words,
                                       const struct tile_place *place, int rows, int64_t row,
                                       int64_t step)
{
    __m512 sum[TILE_ROWS][2];
#pragma GCC unroll 14
    for (int64_t i = 0; i < rows; i++) {
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
        TILE_NAMED(ask_for)(from_number(place->c, place->result, i * place->stride));
    }
    for (; words > 0; words -= TILE_WORDS, a += PIECE_WORDS) {
        int64_t count = least(words, TILE_WORDS);
        for (int64_t k = 0; k < count; k++, b += TILE_COLUMNS) {
            __m512i low = _mm512_load_si512(b), high = _mm512_load_si512(b + LANES);
            TILE_NAMED(ask_for)(b + AHEAD * TILE_COLUMNS);
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
        TILE_NAMED(write_vector)(place, i, 0, sum[i][0]);
        TILE_NAMED(write_vector)(place, i, LANES, sum[i][1]);
    }
}

#define TILE(rows)                                                                                 \
    TILE_TARGET static void TILE_NAMED(rows_##rows)(const uint32_t *a, const uint32_t *b,          \
                                                    int64_t words, const struct tile_place *place) \
    {                                                                                              \
        TILE_NAMED(multiply)(a, b, words, place, rows, TILE_STRIDE, 1);                            \
    }                                                                                              \
    TILE_TARGET static void TILE_NAMED(transposed_##rows)(                                         \
        const uint32_t *a, const uint32_t *b, int64_t words, const struct tile_place *place)       \
    {                                                                                              \
        TILE_NAMED(multiply)(a, b, words, place, rows, 1, LANES);                                  \
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
        {NULL,                                                                                     \
         TILE_NAMED(rows_1),                                                                       \
         TILE_NAMED(rows_2),                                                                       \
         TILE_NAMED(rows_3),                                                                       \
         TILE_NAMED(rows_4),                                                                       \
         TILE_NAMED(rows_5),                                                                       \
         TILE_NAMED(rows_6),                                                                       \
         TILE_NAMED(rows_7),                                                                       \
         TILE_NAMED(rows_8),                                                                       \
         TILE_NAMED(rows_9),                                                                       \
         TILE_NAMED(rows_10),                                                                      \
         TILE_NAMED(rows_11),                                                                      \
         TILE_NAMED(rows_12),                                                                      \
         TILE_NAMED(rows_13),                                                                      \
         TILE_NAMED(rows_14)},                                                                     \
            {NULL,                                                                                 \
             TILE_NAMED(transposed_1),                                                             \
             TILE_NAMED(transposed_2),                                                             \
             TILE_NAMED(transposed_3),                                                             \
             TILE_NAMED(transposed_4),                                                             \
             TILE_NAMED(transposed_5),                                                             \
             TILE_NAMED(transposed_6),                                                             \
             TILE_NAMED(transposed_7),                                                             \
             TILE_NAMED(transposed_8),                                                             \
             TILE_NAMED(transposed_9),                                                             \
             TILE_NAMED(transposed_10),                                                            \
             TILE_NAMED(transposed_11),                                                            \
             TILE_NAMED(transposed_12),                                                            \
             TILE_NAMED(transposed_13),                                                            \
             TILE_NAMED(transposed_14)},                                                           \
    }
