/* array.cu - runs of numbers: fill, add, the sum of squares; and gradients that merely pass. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cassert>

#define SQUARE_PARTS 512

namespace
{

__global__ void fill(float *data, int64_t count, float value)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        data[i] = value;
}

__global__ void add(float *destination, const float *source, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        destination[i] += source[i];
}

struct reduced {
    const float *of[REDUCE_MAX];
    int count;
    bool largest;
};

__global__ void reduce(struct reduced reduced, float *destination, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step()) {
        float result = reduced.of[0][i];
        for (int source = 1; source < reduced.count; source++) {
            float other = reduced.of[source][i];
            if (!reduced.largest)
                result += other;
            else if (other > result || other != other)
                result = other;
        }
        destination[i] = result;
    }
}

/* A sum per warp: which elements are in it does not depend on the device. */
__global__ void square_parts(const float *data, int64_t count, double *parts)
{
    double sum = 0;
    for (int64_t i = element_first(); i < count; i += element_step())
        sum += (double)data[i] * (double)data[i];
    sum = warp_sum(sum);
    if (lane_of() == 0)
        parts[row_first()] = sum;
}

__global__ void square_add(const double *parts, int count, float *out)
{
    double sum = 0;
    for (int i = lane_of(); i < count; i += WARP)
        sum += parts[i];
    sum = warp_sum(sum);
    if (element_first() == 0)
        *out += (float)sum;
}

} // namespace

void cuda_fill(float *data, size_t count, float value)
{
    launch_elements("fill", fill, (int64_t)count, data, (int64_t)count, value);
}

void cuda_sum(float *destination, const float *source, size_t count)
{
    launch_elements("add", add, (int64_t)count, destination, source, (int64_t)count);
}

void cuda_square_sum(const float *data, size_t count, float *sum)
{
    unsigned blocks = blocks_of((int64_t)count, THREADS);
    blocks = blocks < SQUARE_PARTS ? blocks : SQUARE_PARTS;
    double *parts = (double *)(void *)lane_here()->scratch;
    launch_blocks("square_sum", square_parts, dim3(blocks), data, (int64_t)count, parts);
    launch_blocks("square_sum", square_add, dim3(blocks > 0 ? 1 : 0), parts, (int)blocks * WARPS,
                  sum);
}

void cuda_reduce(float *destination, const float *const *sources, int count, uint64_t elements,
                 bool largest)
{
    struct reduced reduced = {};
    assert(count <= REDUCE_MAX);
    reduced.count = count;
    reduced.largest = largest;
    for (int i = 0; i < count; i++)
        reduced.of[i] = sources[i];
    launch_elements("reduce", reduce, (int64_t)elements, reduced, destination, (int64_t)elements);
}

void cuda_pass(const struct kernel_call *call, int i)
{
    const struct view *from = &call->gradient[operation_output(call->node->operation)];
    float *destination = (float *)call->gradient[i].data, *source = (float *)from->data;
    size_t count = (size_t)box_count(&from->box);
    if (!destination || destination == source || count == 0)
        return;
    if (call_accumulates(call, i))
        cuda_sum(destination, source, count);
    else
        lane_note(cudaMemcpyAsync(destination, source, count * sizeof(float),
                                  cudaMemcpyDeviceToDevice, lane_here()->stream),
                  "pass");
}
