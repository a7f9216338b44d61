/* core.h - attention as all its kernels see it: what heads a call has, where their vectors lie,
 * and which of them a block works on. */
#ifndef WORKER_KERNELS_CUDA_CORE_H
#define WORKER_KERNELS_CUDA_CORE_H

#include "worker/kernels/cuda/launch.h"

#include <cmath>
#include <cstring>

#define WIDTH_MAX 128

enum { Q, K, V, Y, LOGSUM };

template <typename E> struct heads {
    int64_t batch, queries, keys, heads, key_heads, group, width;
    int64_t first; /* key of the first query */
    bool causal;
    float scale;
    const E *q, *k, *v, *y, *dy;
    float *logsum;

    /* Where the vector of a head of queries begins in q and y, and of its keys in k and v. */
    __device__ int64_t query(int64_t b, int64_t n, int64_t place) const
    {
        return ((b * queries + place) * heads + n) * width;
    }
    __device__ int64_t key(int64_t b, int64_t n, int64_t place) const
    {
        return ((b * keys + place) * key_heads + n / group) * width;
    }
    __device__ int64_t row(int64_t b, int64_t n, int64_t place) const
    {
        return (b * heads + n) * queries + place;
    }
    /* Keys that query i sees: all, or those up to its own place. */
    __device__ int64_t visible(int64_t i) const
    {
        int64_t count = causal ? first + i + 1 : keys;
        return count < 0 ? 0 : count < keys ? count : keys;
    }
};

template <typename E> heads<E> heads_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t width = box_length(q, q->dims - 1), group = q->dims > k->dims ? box_length(q, 3) : 1;
    return {box_length(q, 0),
            box_length(q, 1),
            box_length(k, 1),
            box_length(q, 2) * group,
            box_length(q, 2),
            group,
            width,
            q->low[1] - k->low[1],
            strcmp(call->node->operation->name, "attend") != 0,
            1 / sqrtf((float)width),
            (const E *)call->operand[Q].data,
            (const E *)call->operand[K].data,
            (const E *)call->operand[V].data,
            (const E *)call->operand[Y].data,
            (const E *)call->gradient[Y].data,
            (float *)call->operand[LOGSUM].data};
}

inline int64_t width_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box;
    return box_length(q, q->dims - 1);
}

/* The work of a block: a head of a sample, and so many places from `place` on, one per warp. */
struct work {
    int64_t b, n, place, mine;
};

__device__ inline struct work work_of(int64_t block, int64_t heads, int64_t places)
{
    int64_t blocks = (places + WARPS - 1) / WARPS, place = block % blocks * WARPS;
    return {block / blocks / heads, block / blocks % heads, place,
            place + (int64_t)(threadIdx.x / WARP)};
}

inline int64_t blocks_for(int64_t batch, int64_t heads, int64_t places)
{
    return batch * heads * ((places + WARPS - 1) / WARPS);
}

/* The gradients of q, k and v: core_backward.cu. */
void core_backward(const struct kernel_call *call);

#endif
