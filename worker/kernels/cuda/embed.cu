/* embed.cu - y[row] = w[token[row]]; tokens of another rank's vocabulary give zeros.
 *
 * Backward, a block takes the rows of one token, from the first to the last: it is the block of
 * the token's first row, and nobody else adds to that row of the table. So the sum has an order. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

struct lookup {
    const int32_t *tokens;
    int64_t low, high; /* of the vocabulary here */
    int64_t rows, hidden;
};

__global__ void gather(struct lookup lookup, const float *w, float *y)
{
    for (int64_t row = row_first(); row < lookup.rows; row += row_step()) {
        int64_t token = lookup.tokens[row];
        bool here = token >= lookup.low && token < lookup.high;
        for (int64_t i = lane_of(); i < lookup.hidden; i += WARP)
            y[row * lookup.hidden + i] = here ? w[(token - lookup.low) * lookup.hidden + i] : 0;
    }
}

/* Whether an earlier row has the token of this one; the whole block asks together. */
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

__global__ void scatter(struct lookup lookup, const float *dy, float *dw)
{
    for (int64_t row = blockIdx.x; row < lookup.rows; row += gridDim.x) {
        int32_t token = lookup.tokens[row];
        if (token < lookup.low || token >= lookup.high || seen_before(&lookup, row))
            continue;
        for (int64_t i = threadIdx.x; i < lookup.hidden; i += THREADS) {
            float sum = 0;
            for (int64_t other = row; other < lookup.rows; other++)
                if (lookup.tokens[other] == token)
                    sum += dy[other * lookup.hidden + i];
            dw[(token - lookup.low) * lookup.hidden + i] += sum;
        }
    }
}

struct lookup lookup_of(const struct kernel_call *call, const struct box *table,
                        const struct box *rows)
{
    return {(const int32_t *)call->operand[0].data, table->low[0], table->high[0], call_rows(rows),
            box_length(table, 1)};
}

void forward(const struct kernel_call *call)
{
    struct lookup lookup = lookup_of(call, &call->operand[1].box, &call->operand[2].box);
    launch_rows("embed", gather, lookup.rows, lookup, (const float *)call->operand[1].data,
                (float *)call->operand[2].data);
}

void backward(const struct kernel_call *call)
{
    struct lookup lookup = lookup_of(call, &call->gradient[1].box, &call->gradient[2].box);
    float *dw = (float *)call->gradient[1].data;
    if (dw)
        launch_blocks("embed backward", scatter, dim3(blocks_of(lookup.rows, 1)), lookup,
                      (const float *)call->gradient[2].data, dw);
}

} // namespace

const struct kernel cuda_embed = {"embed", {{forward}, {backward}}};
