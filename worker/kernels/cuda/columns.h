/* columns.h - sums over rows, one per column: the gradients of biases, of the weights of norms and
 * of position tables.
 *
 * Rows are divided into parts. A block sums some columns of one part into the stream's scratch,
 * then a second kernel adds up the parts. The order is fixed, so every run gives the same bits. */
#ifndef WORKER_KERNELS_CUDA_COLUMNS_H
#define WORKER_KERNELS_CUDA_COLUMNS_H

#include "worker/kernels/cuda/launch.h"

#define COLUMNS_BLOCKS 512 /* enough to keep any device's memory busy */

/* Each lane has N columns. A warp takes one row at a time; the warps of a block divide the rows of
 * the part among them. */
template <int N, typename Value>
__global__ void columns_part(Value value, int64_t rows, int64_t columns, float *parts)
{
    __shared__ float sums[WARPS][WARP * N];
    int warp = (int)(threadIdx.x / WARP), lane = lane_of();
    int64_t across = (int64_t)blockIdx.x * WARP * N, column = across + lane * N;
    int64_t low = rows * blockIdx.y / gridDim.y, high = rows * (blockIdx.y + 1) / gridDim.y;
    struct numbers<N> sum = {
    };
#pragma unroll 4
    for (int64_t row = low + warp; row < high && column < columns; row += WARPS) {
        struct numbers<N> here = value.template at<N>(row, column);
        for (int k = 0; k < N; k++)
            sum.of[k] += here.of[k];
    }
    for (int k = 0; k < N; k++)
        sums[warp][lane * N + k] = sum.of[k];
    __syncthreads();
    int own = (int)threadIdx.x;
    if (own >= WARP * N || across + own >= columns)
        return;
    float total = 0;
    for (int i = 0; i < WARPS; i++)
        total += sums[i][own];
    parts[blockIdx.y * columns + across + own] = total;
}

/* A lane per column; the warps of a block divide the parts among them. */
template <typename Out>
__global__ void columns_add(const float *parts, int64_t count, int64_t columns, Out *out)
{
    __shared__ float sums[WARPS][WARP];
    int warp = (int)(threadIdx.x / WARP), lane = lane_of();
    int64_t column = (int64_t)blockIdx.x * WARP + lane;
    float sum = 0;
#pragma unroll 4
    for (int64_t part = warp; part < count && column < columns; part += WARPS)
        sum += parts[part * columns + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= columns)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += sums[i][lane];
    put_at(&out[column], true, sum);
}

/* In one step, for few rows or for more columns than the scratch has room for. */
template <typename Value, typename Out>
__global__ void columns_short(Value value, int64_t rows, int64_t columns, Out *out)
{
    for (int64_t i = element_first(); i < columns; i += element_step()) {
        float sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += value.template at<1>(row, i).of[0];
        put_at(&out[i], true, sum);
    }
}

/* Add up `count` parts that lie in scratch. */
inline void columns_add_up(const char *what, const float *parts, int64_t count, int64_t columns,
                           enum element element, void *out, int64_t first = 0)
{
    dim3 blocks((unsigned)((columns + WARP - 1) / WARP));
    with_element(element, [&](auto number) {
        using Out = decltype(number);
        launch_blocks(what, columns_add<Out>, blocks, parts, count, columns, (Out *)out + first);
    });
}

/* Sum into parts, as many as are worth it; returns how many, 0 if it is not worth it at all. */
template <int N, typename Value>
int64_t columns_sum_parts(const char *what, Value value, int64_t rows, int64_t columns)
{
    int64_t across = (columns + WARP * N - 1) / (WARP * N);
    int64_t parts = COLUMNS_BLOCKS / across + 1, most = rows / (2 * WARPS);
    int64_t room = SCRATCH_BYTES / (int64_t)sizeof(float) / columns;
    parts = parts < most ? parts : most;
    parts = parts < room ? parts : room;
    if (parts < 2)
        return 0;
    launch_blocks(what, columns_part<N, Value>, dim3((unsigned)across, (unsigned)parts), value,
                  rows, columns, stream_here()->scratch);
    return parts;
}

/* out[first + column] += the sum over rows of value(row, column). The functor is called on the
 * device: value.at<N>(row, column) returns N columns; if `packed`, N may be PACK. `what` names the
 * work in errors. */
template <typename Value>
void columns_sum(const char *what, Value value, bool packed, int64_t rows, int64_t columns,
                 const struct view *out, int64_t first = 0)
{
    if (columns == 0)
        return;
    int64_t parts = packed ? columns_sum_parts<PACK>(what, value, rows, columns)
                           : columns_sum_parts<1>(what, value, rows, columns);
    if (parts > 0) {
        columns_add_up(what, stream_here()->scratch, parts, columns, out->element, out->data,
                       first);
        return;
    }
    with_element(out->element, [&](auto number) {
        using Out = decltype(number);
        launch_elements(what, columns_short<Value, Out>, columns, value, rows, columns,
                        (Out *)out->data + first);
    });
}

#endif
