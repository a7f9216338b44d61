/* tile.h - what a block has at hand of attention's vectors: tiles that all its warps read, and the
 * sums that each warp makes of their rows. */
#ifndef WORKER_KERNELS_CUDA_TILE_H
#define WORKER_KERNELS_CUDA_TILE_H

#include "worker/kernels/cuda/core.h"

/* What a block has at hand: vectors as long as the template's width, with zeros behind their end.
 * A row of a tile is one longer, so that lanes that read a column do not share a bank. */
template <int WIDTH> struct tile {
    float of[WARP][WIDTH + 1];

    __device__ float dot(int row, const float *vector) const
    {
        float sum = 0;
        for (int d = 0; d < WIDTH; d++)
            sum += of[row][d] * vector[d];
        return sum;
    }
};

/* A warp brings a vector: 32 lanes, side by side. from < 0: zeros. */
template <int WIDTH, typename E>
__device__ void bring(float *to, const E *source, int64_t from, int64_t width)
{
    for (int d = lane_of(); d < WIDTH; d += WARP)
        to[d] = from >= 0 && d < width ? wide(source[from + d]) : 0;
}

/* Sums of a warp: element lane + 32 c of a vector. */
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
    /* Each lane's factor times its row of the tile, one lane after the other; the warp's room
     * is where they read each other's. */
    __device__ void add(float factor, const tile<WIDTH> &tile, float *room)
    {
        __syncwarp();
        room[lane_of()] = factor;
        __syncwarp();
        for (int row = 0; row < WARP; row++)
            for (int c = 0; c < WIDTH / WARP; c++)
                of[c] += room[row] * tile.of[row][c * WARP + lane_of()];
    }
    template <typename E> __device__ void leave(E *to, int64_t width, bool add, float by) const
    {
        for (int c = 0; c < WIDTH / WARP; c++)
            if (c * WARP + lane_of() < width)
                put_at(&to[c * WARP + lane_of()], add, of[c] * by);
    }
};

/* Keys and values of 32 places, by the whole block. */
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
