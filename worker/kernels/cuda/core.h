/* core.h - what the attention kernels share: the heads of a call, the layout of their vectors in
 * memory, and how heads and positions are divided between blocks. */
#ifndef WORKER_KERNELS_CUDA_CORE_H
#define WORKER_KERNELS_CUDA_CORE_H

#include "worker/kernels/cuda/launch.h"

#include <cmath>

#define WIDTH_MAX 128 /* of a head */

/* The operands of a call. LOGSUM is (batch, heads, queries), f32: for each query the logarithm of
 * the sum of exp(score). */
enum { Q, K, V, Y, LOGSUM };

/* The heads of a call. q, y and dy are (batch, queries, heads, width); k and v are (batch, keys,
 * key_heads, width). Each head of keys serves `group` query heads: heads = key_heads * group. */
template <typename E> struct heads {
    int64_t batch, queries, keys, heads, key_heads, group, width;
    int64_t first; /* index, among the keys here, of the key at the first query's position */
    bool causal;
    float scale; /* of scores: 1 / sqrt(width) */
    const E *q, *k, *v, *y, *dy;
    float *logsum;

    /* Offset in q, y and dy of the vector of query head n at a position; of its key in k and v; of
     * its number in logsum. */
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
    /* How many keys query i attends to: all, or if causal those up to its own position. */
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
            call->node->operation->causal,
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

/* The work of a block: head n of sample b, and WARPS positions from `place` on, one per warp.
 * `mine` is that of the calling warp, and may lie past the last position. */
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

/* Compute the gradients of q, k and v, in the calling thread's lane: core_backward.cu. */
void core_backward(const struct kernel_call *call);

#endif
