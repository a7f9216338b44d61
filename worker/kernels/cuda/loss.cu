/* loss.cu - cross entropy, a warp per row: the sum over rows of log(sum exp(x)) - x[target].
 *
 * The target of a row may lie in another rank's piece of the vocabulary. Its logit then counts as 0
 * here, so that the sum over the pieces is right. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cmath>

namespace
{

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

template <typename E> struct rows {
    int64_t count, vocab, first; /* vocab: columns here; first: index of the first of them */
    const E *x;
    const int32_t *targets;
    float *largest, *exponentials, *target;
    float share; /* 1 / number of targets in the whole step */

    /* The target's column in this piece; -1: it is in another piece, or the row is ignored. */
    __device__ int64_t column(int64_t row) const
    {
        int64_t at = targets[row] - first;
        return targets[row] >= 0 && at >= 0 && at < vocab ? at : -1;
    }
};

template <typename E> struct rows<E> rows_of(const struct kernel_call *call) {
    const struct box *box = &call->operand[LOGITS].box;
    return {call_rows(box),
            box_length(box, 2),
            box->low[2],
            (const E *)call->operand[LOGITS].data,
            (const int32_t *)call->operand[TARGETS].data,
            (float *)call->operand[LARGEST].data,
            (float *)call->operand[EXPONENTIALS].data,
            (float *)call->operand[TARGET].data,
            (float)(1 / call->targets)};
}

template <typename E>
__global__ void largest(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float largest = -INFINITY;
        for (int64_t i = lane_of(); i < rows.vocab; i += WARP)
            largest = fmaxf(largest, wide(rows.x[row * rows.vocab + i]));
        largest = warp_max(largest);
        if (lane_of() == 0)
            rows.largest[row] = largest;
    }
}

template <typename E> __global__ void sums(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float largest = rows.largest[row], sum = 0;
        for (int64_t i = lane_of(); i < rows.vocab; i += WARP)
            sum += expf(wide(rows.x[row * rows.vocab + i]) - largest);
        sum = warp_sum(sum);
        if (lane_of() == 0) {
            int64_t column = rows.column(row);
            rows.exponentials[row] = sum;
            rows.target[row] = column < 0 ? 0 : wide(rows.x[row * rows.vocab + column]) - largest;
        }
    }
}

/* In one block, so that the order is fixed: each thread sums rows THREADS apart, then the sums are
 * added by warp, and then over the warps. */
template <typename E> __global__ void total(struct rows<E> rows, float *loss)
{
    __shared__ float parts[WARPS];
    float sum = 0;
    for (int64_t row = threadIdx.x; row < rows.count; row += THREADS)
        if (rows.targets[row] >= 0)
            sum += logf(rows.exponentials[row]) - rows.target[row];
    sum = warp_sum(sum);
    if (lane_of() == 0)
        parts[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += parts[i];
    *loss += sum * rows.share;
}

/* dx = (p - [column is the target]) / targets. dx may share memory with the logits. */
template <typename E> __global__ void slope(struct rows<E> rows, E *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float largest = rows.largest[row];
        float share = rows.targets[row] < 0 ? 0 : rows.share;
        float scale = share / rows.exponentials[row];
        int64_t column = rows.column(row);
        const E *x = rows.x + row * rows.vocab;
        E *dx_row = dx + row * rows.vocab;
        each_ahead(
            lane_of(), rows.vocab, WARP, [=](int64_t i) { return wide(x[i]); },
            [=](int64_t i, float logit) {
                float p = expf(logit - largest) * scale;
                put_at(&dx_row[i], add, i == column ? p - share : p);
            });
    }
}

template <typename E> void forward_largest(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("loss", largest<E>, rows.count, rows);
}

template <typename E> void forward_sums(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("loss", sums<E>, rows.count, rows);
}

template <typename E> void forward_loss(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_blocks("loss", total<E>, dim3(rows.count > 0 ? 1 : 0), rows,
                  (float *)call->operand[LOSS].data);
}

template <typename E> void backward(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    E *dx = (E *)call->gradient[LOGITS].data;
    if (dx)
        launch_rows("loss backward", slope<E>, rows.count, rows, dx,
                    call_accumulates(call, LOGITS));
}

} // namespace

const struct kernel cuda_loss = {
    "loss",
    {{EITHER(forward_largest), EITHER(forward_sums), EITHER(forward_loss)}, {EITHER(backward)}},
};
