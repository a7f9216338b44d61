/* core.cu - attention: causal (core), causal with several heads of queries for one of keys
 * and values (grouped), and over all keys (attend). No matrix of scores is kept.
 *
 * Forward, a warp has one query and goes over the keys, 32 at a time, one per lane, with a running
 * maximum and sum: FlashAttention, arXiv 2205.14135, algorithm 1. Backward, a warp has one key and
 * goes over the queries (dk, dv), then a warp has one query and goes over the keys (dq); so every
 * gradient is summed by one warp, in order. What cuDNN takes is left to it: flash.h. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/flash.h"
#include "worker/kernels/cuda/launch.h"

#include <cerrno>
#include <cmath>
#include <cstring>

namespace
{

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

template <typename E> struct heads<E> heads_of(const struct kernel_call *call) {
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

/* What a block has at hand: vectors as long as the template's width, with zeros behind their end.
 * A row of a tile is one longer, so that lanes that read a column do not share a bank. */
template <int WIDTH>
struct tile {
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

/* The work of a block: a head of a sample, and so many places from `place` on, one per warp. */
struct work {
    int64_t b, n, place, mine;
};

__device__ struct work work_of(int64_t block, int64_t heads, int64_t places)
{
    int64_t blocks = (places + WARPS - 1) / WARPS, place = block % blocks * WARPS;
    return {block / blocks / heads, block / blocks % heads, place,
            place + (int64_t)(threadIdx.x / WARP)};
}

int64_t blocks_for(int64_t batch, int64_t heads, int64_t places)
{
    return batch * heads * ((places + WARPS - 1) / WARPS);
}

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

/* Of one pair: P, and dS = P (dy v - mean) / sqrt(d); zero where the query does not see the key. */
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

/* Queries of 32 places with what backward knows of them, by the whole block. */
template <int WIDTH> struct known {
    tile<WIDTH> queries, given;
    float logsum[WARP], mean[WARP];
};

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
        /* No query before this one sees a key of the block. */
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

template <int WIDTH, typename E> void forward_as(const struct kernel_call *call)
{
    struct heads<E> heads = heads_of<E>(call);
    int64_t blocks = blocks_for(heads.batch, heads.heads, heads.queries);
    launch_blocks("attention", attend<WIDTH, E>, dim3(blocks_of(blocks, 1)), heads,
                  (E *)call->operand[Y].data, blocks);
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
    /* Last: it may lie over the gradient of y. */
    blocks = blocks_for(heads.batch, heads.heads, heads.queries);
    if (dq)
        launch_blocks("attention backward", query_gradient<WIDTH, E>, dim3(blocks_of(blocks, 1)),
                      heads, dq, call_accumulates(call, Q), blocks);
}

int64_t width_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box;
    return box_length(q, q->dims - 1);
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

int check(const struct node *node, const struct sizes *sizes, struct error *err)
{
    (void)node;
    long width = (long)sizes_get(sizes, 'd');
    if (width <= WIDTH_MAX)
        return 0;
    return error_set(err, -ENOTSUP,
                     "a head is %ld numbers wide; attention on CUDA devices takes at most %d",
                     width, WIDTH_MAX);
}

} // namespace

const struct kernel cuda_core = {"core", {{EITHER(forward)}, {EITHER(backward)}}, check};
const struct kernel cuda_grouped = {"grouped", {{EITHER(forward)}, {EITHER(backward)}}, check};
const struct kernel cuda_attend = {"attend", {{EITHER(forward)}, {EITHER(backward)}}, check};
