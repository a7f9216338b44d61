/* tile.h - the vectors of attention that a block holds: tiles in shared memory, which all its warps
 * read, and the weighted sums of their rows that each warp keeps in registers. */
#ifndef WORKER_KERNELS_CUDA_TILE_H
#define WORKER_KERNELS_CUDA_TILE_H

#include "worker/kernels/cuda/core.h"

/* WARP vectors, padded with zeros to the width of the template. Rows are one element longer, so
 * that lanes that read a column do not conflict in a bank of shared memory. */
template <int WIDTH> struct tile {
    float of[WARP][WIDTH + 1];

    /* The product of a row with a vector of WIDTH elements. */
    __device__ float dot(int row, const float *vector) const
    {
        float sum = 0;
        for (int d = 0; d < WIDTH; d++)
            sum += of[row][d] * vector[d];
        return sum;
    }
};

/* Load a vector with a warp, from source[from] on, padded with zeros to WIDTH. from < 0: zeros. */
template <int WIDTH, typename E>
__device__ void bring(float *to, const E *source, int64_t from, int64_t width)
{
    for (int d = lane_of(); d < WIDTH; d += WARP)
        to[d] = from >= 0 && d < width ? wide(source[from + d]) : 0;
}

/* A vector distributed over a warp: of[c] is element c * WARP + lane. */
template <int WIDTH> struct part {
    float of[WIDTH / WARP];

    __device__ void clear(void)
    {
        for (int c = 0; c < WIDTH / WARP; c++)
            of[c] = 0;
    }
    __device__ void scale(float by)
    {
        for (int c = 0; c < WIDTH / WARP; c++)
            of[c] *= by;
    }
    /* Add each row of the tile times the factor of the lane of its number, in the order of rows.
     * room, WARP numbers of shared memory for each warp, passes the factors between lanes. */
    __device__ void add(float factor, const tile<WIDTH> &tile, float *room)
    {
        __syncwarp();
        room[lane_of()] = factor;
        __syncwarp();
        for (int row = 0; row < WARP; row++)
            for (int c = 0; c < WIDTH / WARP; c++)
                of[c] += room[row] * tile.of[row][c * WARP + lane_of()];
    }
    /* Store the first `width` elements times `by`, or add them to what is there. */
    template <typename E> __device__ void leave(E *to, int64_t width, bool add, float by) const
    {
        for (int c = 0; c < WIDTH / WARP; c++)
            if (c * WARP + lane_of() < width)
                put_at(&to[c * WARP + lane_of()], add, of[c] * by);
    }
};

/* Load keys and values of WARP positions of query head n with the whole block, between two
 * barriers; zeros past the last key. */
template <int WIDTH, typename E>
__device__ void bring_keys(const struct heads<E> &heads, int64_t b, int64_t n, int64_t place,
                           tile<WIDTH> *keys, tile<WIDTH> *values)
{
    __syncthreads();
    for (int row = (int)(threadIdx.x / WARP); row < WARP; row += WARPS) {
        int64_t from = place + row < heads.keys ? heads.key(b, n, place + row) : -1;
        bring<WIDTH>(keys->of[row], heads.k, from, heads.width);
        bring<WIDTH>(values->of[row], heads.v, from, heads.width);
    }
    __syncthreads();
}

#endif
