/* attention.cu - attention: causal or over all keys, as the operation says, with one or several
 * query heads for each head of keys and values. No matrix of scores is stored.
 *
 * Forward, a warp has one query and goes over the keys, 32 at a time, one per lane, with a running
 * maximum and sum: FlashAttention, arXiv 2205.14135, algorithm 1. The gradients are computed from
 * the logarithms of the sums that forward stored (appendix B.2 there), by two kernels: in one, a
 * warp has one key and goes over the queries (dk, dv); in the other, a warp has one query and goes
 * over the keys (dq). So every gradient is summed by one warp, in a fixed order. Calls that cuDNN
 * supports are left to it: flash.h. */
#include "worker/kernels/cuda/flash.h"
#include "worker/kernels/cuda/launch.h"

#include <cerrno>
#include <cmath>

namespace
{

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

int64_t width_of(const struct kernel_call *call)
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

int64_t blocks_for(int64_t batch, int64_t heads, int64_t places)
{
    return batch * heads * ((places + WARPS - 1) / WARPS);
}

/* the vectors of attention that a block holds: tiles in shared memory, which all its warps
 * read, and the weighted sums of their rows that each warp keeps in registers. */

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

template <int WIDTH, typename E> void attention_forward_as(const struct kernel_call *call)
{
    struct heads<E> heads = heads_of<E>(call);
    int64_t blocks = blocks_for(heads.batch, heads.heads, heads.queries);
    launch_blocks("attention", attend<WIDTH, E>, dim3(blocks_of(blocks, 1)), heads,
                  (E *)call->operand[Y].data, blocks);
}

template <typename E> void attention_forward(const struct kernel_call *call)
{
    if (flash_forward(call))
        return;
    if (width_of(call) <= 32)
        attention_forward_as<32, E>(call);
    else if (width_of(call) <= 64)
        attention_forward_as<64, E>(call);
    else
        attention_forward_as<WIDTH_MAX, E>(call);
}

int attention_check(const struct node *node, struct error *err)
{
    const char *dims = node->dims[Q];
    long width = (long)sizes_get(&node->sizes, dims[strlen(dims) - 1]);
    if (width <= WIDTH_MAX)
        return 0;
    return error_set(err, -ENOTSUP,
                     "a head is %ld numbers wide; attention on CUDA devices takes at most %d",
                     width, WIDTH_MAX);
}

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

template <int WIDTH, typename E> void attention_backward_as(const struct kernel_call *call)
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

template <typename E> void attention_backward(const struct kernel_call *call)
{
    if (flash_backward(call))
        return;
    if (width_of(call) <= 32)
        attention_backward_as<32, E>(call);
    else if (width_of(call) <= 64)
        attention_backward_as<64, E>(call);
    else
        attention_backward_as<WIDTH_MAX, E>(call);
}

} // namespace

const struct kernel cuda_attention = {"attention",
                                      {{EITHER(attention_forward)}, {EITHER(attention_backward)}},
                                      attention_check,
                                      flash_prepare};
