/* core_backward.cu - the gradients of attention, from the logarithms of the sums that forward
 * stored: FlashAttention, arXiv 2205.14135, appendix B.2.
 *
 * There are two kernels: in one, a warp has one key and goes over the queries (dk, dv); in the
 * other, a warp has one query and goes over the keys (dq). So every gradient is summed by one warp,
 * in a fixed order. */
#include "worker/kernels/cuda/core.h"
#include "worker/kernels/cuda/flash.h"
#include "worker/kernels/cuda/tile.h"

namespace
{

/* A query and a key: P, and dS = P (dy v - mean) / sqrt(d), where mean is the sum of dy y. Zero if
 * the query does not attend to the key. */
struct pair {
    float p, ds;
};

template <typename E>
__device__ struct pair pair_of(const struct heads<E> &heads, bool seen, float score, float dp,
                               float logsum, float mean)
{
    float p = seen ? expf(heads.scale * score - logsum) : 0;
    return {p, p * (dp - mean) * heads.scale};
}

template <int WIDTH, typename E>
__global__ void query_gradient(struct heads<E> heads, E *dq, bool add, int64_t blocks)
{
    __shared__ tile<WIDTH> keys, values;
    __shared__ float queries[WARPS][WIDTH], given[WARPS][WIDTH], rooms[WARPS][WARP];
    float *query = queries[threadIdx.x / WARP], *dy = given[threadIdx.x / WARP];
    float *room = rooms[threadIdx.x / WARP];
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        struct work work = work_of(block, heads.heads, heads.queries);
        int64_t i = work.mine, b = work.b, n = work.n;
        bool here = i < heads.queries;
        int64_t from = here ? heads.query(b, n, i) : -1, sees = here ? heads.visible(i) : 0;
        float logsum = here ? heads.logsum[heads.row(b, n, i)] : 0, mean = 0;
        bring<WIDTH>(query, heads.q, from, heads.width);
        bring<WIDTH>(dy, heads.dy, from, heads.width);
        for (int64_t d = lane_of(); here && d < heads.width; d += WARP)
            mean += dy[d] * wide(heads.y[from + d]);
        mean = warp_sum(mean);
        part<WIDTH> out;
        out.clear();
        int64_t end = heads.visible(work.place + WARPS - 1);
        for (int64_t place = 0; place < end; place += WARP) {
            bring_keys(heads, b, n, place, &keys, &values);
            struct pair pair = pair_of(heads, place + lane_of() < sees, keys.dot(lane_of(), query),
                                       values.dot(lane_of(), dy), logsum, mean);
            out.add(pair.ds, keys, room);
        }
        if (here)
            out.leave(dq + from, heads.width, add, 1);
    }
}

template <typename E> struct key_gradients {
    E *dk, *dv; /* NULL: not wanted */
    bool add_k, add_v;
};

/* WARP queries in shared memory, with the gradients of their outputs and their statistics. */
template <int WIDTH> struct known {
    tile<WIDTH> queries, given;
    float logsum[WARP], mean[WARP];
};

/* Load queries with the whole block, between two barriers; zeros past the last one. */
template <int WIDTH, typename E>
__device__ void bring_queries(const struct heads<E> &heads, int64_t b, int64_t n, int64_t place,
                              known<WIDTH> *known)
{
    __syncthreads();
    for (int row = (int)(threadIdx.x / WARP); row < WARP; row += WARPS) {
        bool here = place + row < heads.queries;
        int64_t from = here ? heads.query(b, n, place + row) : -1;
        bring<WIDTH>(known->queries.of[row], heads.q, from, heads.width);
        bring<WIDTH>(known->given.of[row], heads.dy, from, heads.width);
        float mean = 0;
        for (int64_t d = lane_of(); here && d < heads.width; d += WARP)
            mean += wide(heads.dy[from + d]) * wide(heads.y[from + d]);
        mean = warp_sum(mean);
        if (lane_of() == 0) {
            known->mean[row] = mean;
            known->logsum[row] = here ? heads.logsum[heads.row(b, n, place + row)] : 0;
        }
    }
    __syncthreads();
}

template <int WIDTH, typename E>
__global__ void key_gradient(struct heads<E> heads, struct key_gradients<E> out, int64_t blocks)
{
    __shared__ known<WIDTH> known;
    __shared__ float keys[WARPS][WIDTH], values[WARPS][WIDTH], rooms[WARPS][WARP];
    float *key = keys[threadIdx.x / WARP], *value = values[threadIdx.x / WARP];
    float *room = rooms[threadIdx.x / WARP];
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        struct work work = work_of(block, heads.key_heads, heads.keys);
        int64_t j = work.mine, b = work.b, n = work.n * heads.group;
        bool here = j < heads.keys;
        int64_t from = here ? heads.key(b, n, j) : -1;
        bring<WIDTH>(key, heads.k, from, heads.width);
        bring<WIDTH>(value, heads.v, from, heads.width);
        part<WIDTH> dk, dv;
        dk.clear();
        dv.clear();
        /* No earlier query attends to a key of this block. */
        int64_t begin = heads.causal && work.place > heads.first ? work.place - heads.first : 0;
        for (int64_t head = n; head < n + heads.group; head++)
            for (int64_t place = begin; place < heads.queries; place += WARP) {
                bring_queries(heads, b, head, place, &known);
                int64_t i = place + lane_of();
                bool seen = here && i < heads.queries && j < heads.visible(i);
                struct pair pair = pair_of(heads, seen, known.queries.dot(lane_of(), key),
                                           known.given.dot(lane_of(), value),
                                           known.logsum[lane_of()], known.mean[lane_of()]);
                dk.add(pair.ds, known.queries, room);
                dv.add(pair.p, known.given, room);
            }
        if (here && out.dk)
            dk.leave(out.dk + from, heads.width, out.add_k, 1);
        if (here && out.dv)
            dv.leave(out.dv + from, heads.width, out.add_v, 1);
    }
}

template <int WIDTH, typename E> void backward_as(const struct kernel_call *call)
{
    struct heads<E> heads = heads_of<E>(call);
    struct key_gradients<E> out = {
        (E *)call->gradient[K].data, (E *)call->gradient[V].data, call_accumulates(call, K),
            call_accumulates(call, V)
    };
    E *dq = (E *)call->gradient[Q].data;
    int64_t blocks = blocks_for(heads.batch, heads.key_heads, heads.keys);
    if (out.dk || out.dv)
        launch_blocks("attention backward", key_gradient<WIDTH, E>, dim3(blocks_of(blocks, 1)),
                      heads, out, blocks);
    /* Last, because it may share memory with the gradient of y. */
    blocks = blocks_for(heads.batch, heads.heads, heads.queries);
    if (dq)
        launch_blocks("attention backward", query_gradient<WIDTH, E>, dim3(blocks_of(blocks, 1)),
                      heads, dq, call_accumulates(call, Q), blocks);
}

template <typename E> void backward(const struct kernel_call *call)
{
    if (flash_backward(call))
        return;
    if (width_of(call) <= 32)
        backward_as<32, E>(call);
    else if (width_of(call) <= 64)
        backward_as<64, E>(call);
    else
        backward_as<WIDTH_MAX, E>(call);
}

} // namespace

void core_backward(const struct kernel_call *call)
{
    EITHER(backward)(call);
}
