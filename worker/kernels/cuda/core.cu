/* core.cu - attention: causal or over all keys, as the operation says, with one or several query
 * heads for each head of keys and values. No matrix of scores is stored.
 *
 * Forward, a warp has one query and goes over the keys, 32 at a time, one per lane, with a running
 * maximum and sum: FlashAttention, arXiv 2205.14135, algorithm 1. Calls that cuDNN supports are
 * left to it: flash.h. */
#include "worker/kernels/cuda/core.h"
#include "worker/kernels/cuda/flash.h"
#include "worker/kernels/cuda/tile.h"

#include <cerrno>

namespace
{

template <int WIDTH, typename E> __global__ void attend(struct heads<E> heads, E *y, int64_t blocks)
{
    __shared__ tile<WIDTH> keys, values;
    __shared__ float queries[WARPS][WIDTH], rooms[WARPS][WARP];
    float *query = queries[threadIdx.x / WARP], *room = rooms[threadIdx.x / WARP];
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        struct work work = work_of(block, heads.heads, heads.queries);
        int64_t i = work.mine, b = work.b, n = work.n;
        bool here = i < heads.queries;
        int64_t sees = here ? heads.visible(i) : 0;
        part<WIDTH> out;
        float largest = -INFINITY, sum = 0;
        out.clear();
        bring<WIDTH>(query, heads.q, here ? heads.query(b, n, i) : -1, heads.width);
        int64_t end = heads.visible(work.place + WARPS - 1);
        for (int64_t place = 0; place < end; place += WARP) {
            bring_keys(heads, b, n, place, &keys, &values);
            bool seen = place + lane_of() < sees;
            float score = seen ? heads.scale * keys.dot(lane_of(), query) : -INFINITY;
            float top = fmaxf(largest, warp_max(score));
            float p = seen ? expf(score - top) : 0;
            float shrink = largest == top ? 1 : expf(largest - top);
            sum = sum * shrink + warp_sum(p);
            out.scale(shrink);
            out.add(p, values, room);
            largest = top;
        }
        if (!here)
            continue;
        out.leave(y + heads.query(b, n, i), heads.width, false, sees > 0 ? 1 / sum : 0);
        if (lane_of() == 0)
            heads.logsum[heads.row(b, n, i)] = sees > 0 ? largest + logf(sum) : -INFINITY;
    }
}

template <int WIDTH, typename E> void forward_as(const struct kernel_call *call)
{
    struct heads<E> heads = heads_of<E>(call);
    int64_t blocks = blocks_for(heads.batch, heads.heads, heads.queries);
    launch_blocks("attention", attend<WIDTH, E>, dim3(blocks_of(blocks, 1)), heads,
                  (E *)call->operand[Y].data, blocks);
}

template <typename E> void forward(const struct kernel_call *call)
{
    if (flash_forward(call))
        return;
    if (width_of(call) <= 32)
        forward_as<32, E>(call);
    else if (width_of(call) <= 64)
        forward_as<64, E>(call);
    else
        forward_as<WIDTH_MAX, E>(call);
}

int check(const struct node *node, struct error *err)
{
    long width = (long)sizes_get(&node->sizes, 'd');
    if (width <= WIDTH_MAX)
        return 0;
    return error_set(err, -ENOTSUP,
                     "a head is %ld numbers wide; attention on CUDA devices takes at most %d",
                     width, WIDTH_MAX);
}

} // namespace

const struct kernel cuda_attention = {
    "attention", {{EITHER(forward)}, {core_backward}}, check, flash_prepare};
