/* embed.cu - y[row] = w[token[row]]; tokens of another rank's part of the vocabulary give zeros.
 *
 * Backward, the block of the first row with a token adds up all rows with that token, from the
 * first to the last, and no other block adds to that row of the table. So the order of the sum is
 * fixed. A block examines as many tokens at once as it has threads, lists the matching rows, and
 * then adds these up. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#define COLUMNS 4 /* that a thread sums at once */

namespace
{

struct lookup {
    const int32_t *tokens;
    int64_t low, high; /* the tokens whose rows of the table are here: low <= token < high */
    int64_t rows, hidden;
};

template <typename E> __global__ void gather(struct lookup lookup, const E *w, E *y)
{
    for (int64_t row = row_first(); row < lookup.rows; row += row_step()) {
        int64_t token = lookup.tokens[row];
        bool here = token >= lookup.low && token < lookup.high;
        for (int64_t i = lane_of(); i < lookup.hidden; i += WARP)
            set_at(&y[row * lookup.hidden + i],
                   here ? wide(w[(token - lookup.low) * lookup.hidden + i]) : 0);
    }
}

/* Whether an earlier row has the token of this one. Called by the whole block. */
__device__ bool seen_before(const struct lookup *lookup, int64_t row)
{
    int32_t token = lookup->tokens[row];
    for (int64_t from = 0; from < row; from += THREADS) {
        int64_t other = from + threadIdx.x;
        if (__syncthreads_or(other < row && lookup->tokens[other] == token))
            return true;
    }
    return false;
}

/* The matching rows among those that the threads of a block examine, in ascending order; in shared
 * memory. */
struct listing {
    int64_t rows[THREADS];
    int counts[WARPS];
};

/* List the rows of all threads for which `counts` holds; returns their number. Called by the whole
 * block. */
__device__ int list_rows(struct listing *listing, int64_t row, bool counts)
{
    unsigned votes = __ballot_sync(0xffffffffu, counts);
    int warp = (int)threadIdx.x / WARP, before = 0, all = 0;
    if (lane_of() == 0)
        listing->counts[warp] = __popc(votes);
    __syncthreads();
    for (int other = 0; other < WARPS; other++) {
        before += other < warp ? listing->counts[other] : 0;
        all += listing->counts[other];
    }
    if (counts)
        listing->rows[before + __popc(votes & ((1u << lane_of()) - 1))] = row;
    __syncthreads();
    return all;
}

/* Add to sums, of this thread's columns first, first + THREADS, ..., all rows from `row` on that
 * have the same token. Called by the whole block. */
template <typename E>
__device__ void sum_rows(const struct lookup *lookup, const E *dy, int64_t row, int64_t first,
                         struct listing *listing, float sums[COLUMNS])
{
    int32_t token = lookup->tokens[row];
    for (int64_t from = row; from < lookup->rows; from += THREADS) {
        int64_t other = from + threadIdx.x;
        bool same = other < lookup->rows && lookup->tokens[other] == token;
        if (!__syncthreads_or(same))
            continue;
        int count = list_rows(listing, other, same);
        for (int k = 0; k < count; k++)
            for (int c = 0; c < COLUMNS; c++) {
                int64_t i = first + c * THREADS;
                sums[c] += i < lookup->hidden ? wide(dy[listing->rows[k] * lookup->hidden + i]) : 0;
            }
    }
}

template <typename E, typename Out>
__global__ void scatter(struct lookup lookup, const E *dy, Out *dw)
{
    __shared__ struct listing listing;
    for (int64_t row = blockIdx.x; row < lookup.rows; row += gridDim.x) {
        int32_t token = lookup.tokens[row];
        if (token < lookup.low || token >= lookup.high || seen_before(&lookup, row))
            continue;
        for (int64_t part = 0; part < lookup.hidden; part += COLUMNS * THREADS) {
            float sums[COLUMNS] = {};
            int64_t first = part + threadIdx.x;
            sum_rows(&lookup, dy, row, first, &listing, sums);
            for (int c = 0; c < COLUMNS && first + c * THREADS < lookup.hidden; c++)
                put_at(&dw[(token - lookup.low) * lookup.hidden + first + c * THREADS], true,
                       sums[c]);
        }
    }
}

struct lookup lookup_of(const struct kernel_call *call, const struct box *table,
                        const struct box *rows)
{
    return {(const int32_t *)call->operand[0].data, table->low[0], table->high[0], call_rows(rows),
            box_length(table, 1)};
}

template <typename E> void embed_forward(const struct kernel_call *call)
{
    struct lookup lookup = lookup_of(call, &call->operand[1].box, &call->operand[2].box);
    launch_rows("embed", gather<E>, lookup.rows, lookup, (const E *)call->operand[1].data,
                (E *)call->operand[2].data);
}

template <typename E> void embed_backward(const struct kernel_call *call)
{
    struct lookup lookup = lookup_of(call, &call->gradient[1].box, &call->gradient[2].box);
    const struct view *dw = &call->gradient[1];
    if (dw->data)
        with_element(dw->element, [&](auto out) {
            launch_blocks("embed backward", scatter<E, decltype(out)>,
                          dim3(blocks_of(lookup.rows, 1)), lookup,
                          (const E *)call->gradient[2].data, (decltype(out) *)dw->data);
        });
}

} // namespace

const struct kernel cuda_embed = {"embed", {{EITHER(embed_forward)}, {EITHER(embed_backward)}}};
