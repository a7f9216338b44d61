/* loss.cu - cross entropy, a warp per row: the sum over rows of log(sum exp(x)) - x[target].
 *
 * The target of a row may lie in another rank's piece of the vocabulary. Its logit then counts as 0
 * here, so that the sum over the pieces is right. If this rank has the whole vocabulary, the first
 * phase does nothing, and the second finds both the largest logit and the sum in one pass. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cfloat>
#include <cmath>
#include <type_traits>

namespace
{

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

template <typename E> struct rows {
    int64_t count, vocab, first; /* vocab: columns here; first: index of the first of them */
    const E *x;
    const int32_t *targets;
    float *largest, *exponentials, *target;
    float share; /* 1 / number of targets in the whole step */
    bool whole;  /* there are no other pieces */

    bool packed(const void *dx) const
    {
        return packs(vocab, {x, dx});
    }
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
            call_width(box),
            box->low[box->dims - 1],
            (const E *)call->operand[LOGITS].data,
            (const int32_t *)call->operand[TARGETS].data,
            (float *)call->operand[LARGEST].data,
            (float *)call->operand[EXPONENTIALS].data,
            (float *)call->operand[TARGET].data,
            (float)(1 / call->targets),
            call_width(box) == call_whole_width(call, LOGITS)};
}

/* For bf16 the device's own, which is off by less than the logits were rounded. */
template <typename E>
__device__ float exponential(float x)
{
    return std::is_same_v<E, float> ? expf(x) : __expf(x);
}

template <typename E> __global__ void largest(struct rows<E> rows)
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

/* Store what the row has in all phases but the last. */
template <typename E>
__device__ void leave(const struct rows<E> &rows, int64_t row, float largest, float sum)
{
    int64_t column = rows.column(row);
    rows.exponentials[row] = sum;
    rows.target[row] = column < 0 ? 0 : wide(rows.x[row * rows.vocab + column]) - largest;
}

/* Each lane's sum is of exp(x - the largest that it has seen): Milakov and Gimelshein, arXiv
 * 1805.02867. */
template <int N, typename E> __global__ void largest_and_sums(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mine = -FLT_MAX, sum = 0;
#pragma unroll 4
        for (int64_t i = lane_of() * N; i < rows.vocab; i += WARP * N) {
            struct numbers<N> x = numbers_at<N>(&rows.x[row * rows.vocab + i]);
            float before = mine;
            for (int k = 0; k < N; k++)
                mine = fmaxf(mine, x.of[k]);
            sum *= exponential<E>(before - mine);
            for (int k = 0; k < N; k++)
                sum += exponential<E>(x.of[k] - mine);
        }
        float largest = warp_max(mine);
        sum = warp_sum(sum * exponential<E>(mine - largest));
        if (lane_of() == 0) {
            rows.largest[row] = largest;
            leave(rows, row, largest, sum);
        }
    }
}

template <typename E> __global__ void sums(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float largest = rows.largest[row], sum = 0;
        for (int64_t i = lane_of(); i < rows.vocab; i += WARP)
            sum += expf(wide(rows.x[row * rows.vocab + i]) - largest);
        sum = warp_sum(sum);
        if (lane_of() == 0)
            leave(rows, row, largest, sum);
    }
}

/* In one block, so that the order is fixed: each thread sums rows THREADS apart, then the sums are
 * added by warp, and then over the warps. */
template <typename E> __global__ void total(struct rows<E> rows, float *loss)
{
    __shared__ float parts[WARPS];
    float sum = 0;
#pragma unroll 4
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
template <int N, typename E> __global__ void slope(struct rows<E> rows, E *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float largest = rows.largest[row];
        float share = rows.targets[row] < 0 ? 0 : rows.share;
        float scale = share / rows.exponentials[row];
        int64_t column = rows.column(row);
        const E *x = rows.x + row * rows.vocab;
        E *dx_row = dx + row * rows.vocab;
        for (int64_t i = lane_of() * N; i < rows.vocab; i += WARP * N) {
            struct numbers<N> logits = numbers_at<N>(&x[i]), sum = {
            };
            if (add)
                sum = numbers_at<N>(&dx_row[i]);
            for (int k = 0; k < N; k++) {
                float p = exponential<E>(logits.of[k] - largest) * scale;
                sum.of[k] += i + k == column ? p - share : p;
            }
            numbers_set<N>(&dx_row[i], sum);
        }
    }
}

template <typename E> void loss_forward_largest(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole)
        launch_rows("loss", largest<E>, rows.count, rows);
}

template <typename E> void loss_forward_sums(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole)
        launch_rows("loss", sums<E>, rows.count, rows);
    else if (rows.packed(NULL))
        launch_rows("loss", largest_and_sums<PACK, E>, rows.count, rows);
    else
        launch_rows("loss", largest_and_sums<1, E>, rows.count, rows);
}

template <typename E> void loss_forward(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_blocks("loss", total<E>, dim3(rows.count > 0 ? 1 : 0), rows,
                  (float *)call->operand[LOSS].data);
}

template <typename E> void loss_backward(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    E *dx = (E *)call->gradient[LOGITS].data;
    bool add = call_accumulates(call, LOGITS);
    if (dx && rows.packed(dx))
        launch_rows("loss backward", slope<PACK, E>, rows.count, rows, dx, add);
    else if (dx)
        launch_rows("loss backward", slope<1, E>, rows.count, rows, dx, add);
}

} // namespace

const struct kernel cuda_loss = {
    "loss",
    {{EITHER(loss_forward_largest), EITHER(loss_forward_sums), EITHER(loss_forward)},
     {EITHER(loss_backward)}},
};
