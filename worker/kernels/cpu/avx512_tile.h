/* avx512_tile.h - the innermost loop of products of f32: up to 14 rows by 32 columns of c. */
#ifndef WORKER_KERNELS_CPU_AVX512_TILE_H
#define WORKER_KERNELS_CPU_AVX512_TILE_H

#include <stdbool.h>
#include <stdint.h>

#define TILE_ROWS INT64_C(14)
#define TILE_COLUMNS INT64_C(32)
#define TILE_INNER INT64_C(384) /* numbers that may be contracted on */
/* From row to row of a panel of a: no power of 2, so that they lie in unlike sets of the cache. */
#define TILE_STRIDE (TILE_INNER + 16)

/* What is written. */
struct tile_place {
    float *c;
    int64_t stride;
    const float *bias; /* NULL: none */
    bool add;          /* to what is there */
    int64_t columns;   /* that there are; only these are touched */
};

/* c = a b, or that added to c. b is packed: `count` rows of 32 numbers, at a cache line. So is a:
 * its rows TILE_STRIDE apart, or, transposed, `count` times 16 numbers. Each number of c is one
 * sum, in the order of what is contracted on. */
typedef void tile_fn(const float *a, const float *b, int64_t count, const struct tile_place *place);

/* By whether a is transposed, and by rows, 1 to TILE_ROWS. */
extern tile_fn *const avx512_tiles[2][TILE_ROWS + 1];

#endif
