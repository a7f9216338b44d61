/* team.h - whole rows in registers: a team of warps takes one row at a time, and each thread has
 * some packs of it. */
#ifndef WORKER_KERNELS_CUDA_TEAM_H
#define WORKER_KERNELS_CUDA_TEAM_H

#include "worker/kernels/cuda/pack.h"

#define CHUNKS_MAX 4 /* packs of a row that a thread has: more would not fit in its registers */
#define TEAM_COLUMNS_MAX (WARPS * WARP * PACK * CHUNKS_MAX)

/* TEAM warps with CHUNKS packs for each thread: those at columns first, first + SPAN, ... */
template <int TEAM, int CHUNKS> struct team {
    static constexpr int THREADS_OF = TEAM * WARP, TEAMS = WARPS / TEAM, SPAN = THREADS_OF * PACK;
    int number; /* in the block */
    int64_t first, columns;

    __device__ team(int64_t columns)
        : number((int)threadIdx.x / THREADS_OF), first(threadIdx.x % THREADS_OF * PACK),
          columns(columns)
    {
    }
    __device__ int64_t at(int chunk) const
    {
        return first + chunk * SPAN;
    }
    __device__ bool has(int chunk) const
    {
        return at(chunk) < columns;
    }
    __device__ bool is_first(void) const
    {
        return first == 0;
    }

    /* A row's chunks from memory; zeros where it has ended, and for a row that is none. */
    template <typename E>
    __device__ void load(struct pack<E, PACK> (&row)[CHUNKS], const E *from, bool is) const
    {
        for (int c = 0; c < CHUNKS; c++)
            row[c] = is && has(c) ? pack_at<PACK>(&from[at(c)]) : pack<E, PACK>();
    }

    /* Sums over the team's threads, in a fixed order. Teams of several warps call it together, for
     * each of their rows equally often; `turn` is how often they have, so that one barrier is
     * enough. */
    template <int N> __device__ numbers<N> sum(struct numbers<N> mine, int turn) const
    {
        __shared__ struct numbers<N> sums[2][WARPS];
        for (int i = 0; i < N; i++)
            mine.of[i] = warp_sum(mine.of[i]);
        if (TEAM == 1)
            return mine;
        if (lane_of() == 0)
            sums[turn % 2][threadIdx.x / WARP] = mine;
        __syncthreads();
        mine = sums[turn % 2][number * TEAM];
        for (int warp = 1; warp < TEAM; warp++)
            for (int i = 0; i < N; i++)
                mine.of[i] += sums[turn % 2][number * TEAM + warp].of[i];
        return mine;
    }
};

/* Blocks for this many rows. */
template <int TEAM> unsigned team_blocks(int64_t rows)
{
    return blocks_of(rows, WARPS / TEAM);
}

/* Call launch<TEAM, CHUNKS>() for the smallest team whose threads have room for a row: in ALONE
 * chunks each if it is one warp, otherwise in SHARED. For the widest rows there is none, and they
 * have CHUNKS_MAX. */
template <int ALONE, int SHARED, typename Launch> void team_choose(int64_t columns, Launch launch)
{
    static_assert(ALONE >= 3 && ALONE <= CHUNKS_MAX && SHARED <= CHUNKS_MAX);
    const int64_t chunks = (columns + WARP * PACK - 1) / (WARP * PACK); /* of a warp's threads */
    if (chunks <= 1)
        launch.template operator()<1, 1>();
    else if (chunks <= 2)
        launch.template operator()<1, 2>();
    else if (chunks <= 3)
        launch.template operator()<1, 3>();
    else if (chunks <= ALONE)
        launch.template operator()<1, ALONE>();
    else if (chunks <= 2 * SHARED)
        launch.template operator()<2, SHARED>();
    else if (chunks <= 4 * SHARED)
        launch.template operator()<4, SHARED>();
    else if (chunks <= 8 * SHARED)
        launch.template operator()<8, SHARED>();
    else
        launch.template operator()<8, CHUNKS_MAX>();
}

#endif
