/* square.cu - sums of squares, of many arrays in two launches: a block sums a part of one array,
 * then one block adds up what belongs to each, and the arrays one after the other. How an array is
 * divided depends only on how long it is, so it does not matter which others are beside it. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

#define ARRAYS_MAX 64
#define PARTS_MAX 512          /* of an array */
#define PART_MIN (8 * THREADS) /* elements */

struct array {
    const float *data;
    int64_t count;
    int parts_end; /* parts of all arrays up to and with this one */
};

struct arrays {
    struct array of[ARRAYS_MAX];
    int count;
};

static_assert(sizeof(double) * ARRAYS_MAX * PARTS_MAX <= SCRATCH_BYTES, "where parts are left");

__host__ __device__ inline int parts_begin(const struct arrays &arrays, int index)
{
    return index > 0 ? arrays.of[index - 1].parts_end : 0;
}

__global__ void square_parts(struct arrays arrays, double *parts)
{
    __shared__ double sums[WARPS];
    int index = 0, part = (int)blockIdx.x;
    while (part >= arrays.of[index].parts_end)
        index++;
    const struct array &array = arrays.of[index];
    int64_t first = part - parts_begin(arrays, index);
    int64_t count = array.parts_end - parts_begin(arrays, index);
    int64_t low = array.count * first / count, high = array.count * (first + 1) / count;
    double sum = 0;
#pragma unroll 4
    for (int64_t i = low + threadIdx.x; i < high; i += THREADS)
        sum += (double)array.data[i] * (double)array.data[i];
    sum = warp_sum(sum);
    if (lane_of() == 0)
        sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += sums[i];
    parts[part] = sum;
}

__global__ void square_add(struct arrays arrays, const double *parts, float *out)
{
    __shared__ float sums[ARRAYS_MAX];
    for (int index = (int)(threadIdx.x / WARP); index < arrays.count; index += WARPS) {
        double sum = 0;
        int end = arrays.of[index].parts_end;
        for (int part = parts_begin(arrays, index) + lane_of(); part < end; part += WARP)
            sum += parts[part];
        row_leave(&sums[index], (float)warp_sum(sum));
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    float sum = *out;
    for (int index = 0; index < arrays.count; index++)
        sum += sums[index];
    *out = sum;
}

/* Take calls until the arrays are full, leaving out empty ones; returns how many were consumed. */
int fill(struct arrays *arrays, const struct square_call *calls, int count)
{
    int i = 0, end = 0;
    for (; i < count && arrays->count < ARRAYS_MAX; i++) {
        int64_t parts = ((int64_t)calls[i].count + PART_MIN - 1) / PART_MIN;
        if (parts == 0)
            continue;
        end += (int)(parts < PARTS_MAX ? parts : PARTS_MAX);
        arrays->of[arrays->count++] = {calls[i].data, (int64_t)calls[i].count, end};
    }
    return i;
}

} // namespace

void cuda_square_sum_all(const struct square_call *calls, int count, float *sum)
{
    double *parts = (double *)(void *)stream_here()->scratch;
    for (int done = 0; done < count;) {
        struct arrays arrays = {};
        done += fill(&arrays, calls + done, count - done);
        if (arrays.count == 0)
            continue;
        launch_blocks("square_sum", square_parts,
                      dim3((unsigned)arrays.of[arrays.count - 1].parts_end), arrays, parts);
        launch_blocks("square_sum", square_add, dim3(1), arrays, parts, sum);
    }
}

void cuda_square_sum(const float *data, size_t count, float *sum)
{
    const struct square_call call = {data, count};
    cuda_square_sum_all(&call, 1, sum);
}
