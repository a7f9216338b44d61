/* columns.h - sums over rows, one per column: the gradients of biases, of the weights of norms and
 * of position tables.
 *
 * Rows are divided into parts. A block sums WARP columns of one part into the lane's scratch, then
 * a second kernel adds up the parts. The order is fixed, so every run gives the same bits. */
#ifndef WORKER_KERNELS_CUDA_COLUMNS_H
#define WORKER_KERNELS_CUDA_COLUMNS_H

#include "worker/kernels/cuda/launch.h"

#define PARTS_MAX 64

/* A warp takes one row at a time; the warps of a block divide the rows of the part among them. */
template <typename Value>
__global__ void columns_part(Value value, int64_t rows, int64_t columns, float *parts)
{
    __shared__ float sums[WARPS][WARP];
    int warp = (int)(threadIdx.x / WARP), lane = lane_of();
    int64_t column = (int64_t)blockIdx.x * WARP + lane;
    int64_t low = rows * blockIdx.y / gridDim.y, high = rows * (blockIdx.y + 1) / gridDim.y;
    float sum = 0;
    for (int64_t row = low + warp; row < high && column < columns; row += WARPS)
        sum += value(row, column);
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= columns)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += sums[i][lane];
    parts[blockIdx.y * columns + column] = sum;
}

template <typename Out>
__global__ void columns_add(const float *parts, int64_t count, int64_t columns, Out *out)
{
    for (int64_t i = element_first(); i < columns; i += element_step()) {
        float sum = 0;
        for (int64_t part = 0; part < count; part++)
            sum += parts[part * columns + i];
        put_at(&out[i], true, sum);
    }
}

/* In one step, for few rows or for more columns than the scratch has room for. */
template <typename Value, typename Out>
__global__ void columns_short(Value value, int64_t rows, int64_t columns, Out *out)
{
    for (int64_t i = element_first(); i < columns; i += element_step()) {
        float sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += value(row, i);
        put_at(&out[i], true, sum);
    }
}

template <typename Value, typename Out>
void columns_sum_into(const char *what, Value value, int64_t rows, int64_t columns, Out *out)
{
    if (columns == 0)
        return;
    int64_t parts = rows / (2 * WARPS), room = SCRATCH_BYTES / (int64_t)sizeof(float) / columns;
    parts = parts < PARTS_MAX ? parts : PARTS_MAX;
    parts = parts < room ? parts : room;
    if (parts < 2) {
        launch_elements(what, columns_short<Value, Out>, columns, value, rows, columns, out);
        return;
    }
    float *scratch = lane_here()->scratch;
    dim3 blocks((unsigned)((columns + WARP - 1) / WARP), (unsigned)parts);
    launch_blocks(what, columns_part<Value>, blocks, value, rows, columns, scratch);
    launch_elements(what, columns_add<Out>, columns, scratch, parts, columns, out);
}

/* out[first + column] += the sum over rows of value(row, column), which is a device functor. `what`
 * names the work in errors. */
template <typename Value>
void columns_sum(const char *what, Value value, int64_t rows, int64_t columns,
                 const struct view *out, int64_t first = 0)
{
    with_element(out->element, [&](auto number) {
        columns_sum_into(what, value, rows, columns, (decltype(number) *)out->data + first);
    });
}

#endif
