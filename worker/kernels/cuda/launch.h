/* launch.h - how kernels are launched, and the device functions that they share. Loops are
 * grid-strided: a thread takes elements, or a warp rows, that are a whole grid apart. Launches go
 * to the calling thread's stream, which also remembers errors; `what` names the work in them. */
#ifndef WORKER_KERNELS_CUDA_LAUNCH_H
#define WORKER_KERNELS_CUDA_LAUNCH_H

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/stream.h"

#include <cstring>
#include <cuda_bf16.h>
#include <initializer_list>

#define WARP 32
#define THREADS 256 /* of every block */
#define WARPS (THREADS / WARP)
#define BLOCKS_MAX 8192 /* enough to fill any device */

/* The number of blocks for `count` items, `each` of them per block. */
inline unsigned blocks_of(int64_t count, int64_t each)
{
    int64_t blocks = (count + each - 1) / each;
    return (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
}

/* Launch a grid of blocks; an empty grid does nothing. */
template <typename... Parameters, typename... Arguments>
void launch_blocks(const char *what, void (*kernel)(Parameters...), dim3 blocks,
                   Arguments... arguments)
{
    if (blocks.x == 0 || blocks.y == 0)
        return;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(THREADS);
    config.stream = stream_here()->cuda;
    stream_note(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), what);
}

/* Launch with a thread per element, or a warp per row. */
template <typename... Parameters, typename... Arguments>
void launch_elements(const char *what, void (*kernel)(Parameters...), int64_t count,
                     Arguments... arguments)
{
    launch_blocks(what, kernel, dim3(blocks_of(count, THREADS)), arguments...);
}

template <typename... Parameters, typename... Arguments>
void launch_rows(const char *what, void (*kernel)(Parameters...), int64_t rows,
                 Arguments... arguments)
{
    launch_blocks(what, kernel, dim3(blocks_of(rows, WARPS)), arguments...);
}

/* for (int64_t i = element_first(); i < count; i += element_step()) */
__device__ inline int64_t element_first()
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

__device__ inline int64_t element_step()
{
    return (int64_t)gridDim.x * THREADS;
}

/* Elements that a thread loads before it stores the first of them. */
#define AHEAD 4

/* For i = first, first + step, ... below count: store(i, load(i)), with AHEAD loads under way at
 * once. The compiler itself cannot move a load across a store that may be to the same memory, and
 * one load of two bytes for each thread of the device is far from what its memory can deliver.
 * Results may share memory with what is loaded, element by element. */
template <typename Load, typename Store>
__device__ void each_ahead(int64_t first, int64_t count, int64_t step, Load load, Store store)
{
    for (int64_t i = first; i < count; i += AHEAD * step) {
        decltype(load(i)) loaded[AHEAD];
        for (int k = 0; k < AHEAD; k++)
            if (i + k * step < count)
                loaded[k] = load(i + k * step);
        for (int k = 0; k < AHEAD; k++)
            if (i + k * step < count)
                store(i + k * step, loaded[k]);
    }
}

/* The same for a thread's elements of a whole array. */
template <typename Load, typename Store>
__device__ void each_element_ahead(int64_t count, Load load, Store store)
{
    each_ahead(element_first(), count, element_step(), load, store);
}

/* Likewise for rows. Within a row: for (int64_t i = lane_of(); i < width; i += WARP) */
__device__ inline int64_t row_first()
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
}

__device__ inline int64_t row_step()
{
    return (int64_t)gridDim.x * WARPS;
}

__device__ inline int lane_of()
{
    return (int)(threadIdx.x % WARP);
}

/* Call row(index), a device functor, for each row with a whole warp. */
template <typename Row> __global__ void each_row(Row row, int64_t count)
{
    for (int64_t at = row_first(); at < count; at += row_step())
        row(at);
}

template <typename Row> void launch_each_row(const char *what, int64_t count, Row row)
{
    launch_rows(what, each_row<Row>, count, row, count);
}

/* Store a value that all lanes of the warp have. */
__device__ inline void row_leave(float *to, float value)
{
    if (lane_of() == 0)
        *to = value;
}

/* Reduce over the warp, in a fixed order; all its lanes get the result. */
template <typename Number> __device__ inline Number warp_sum(Number value)
{
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

__device__ inline float warp_max(float value)
{
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
    return value;
}

/* Whatever the element, computation is in f32: wide() loads, set_at() rounds and stores. */
typedef __nv_bfloat16 bf16;

__device__ inline float wide(float number)
{
    return number;
}

__device__ inline float wide(bf16 number)
{
    return __bfloat162float(number);
}

__device__ inline void set_at(float *at, float value)
{
    *at = value;
}

__device__ inline void set_at(bf16 *at, float value)
{
    *at = __float2bfloat16_rn(value);
}

/* Store a result, or add it to what is there. */
template <typename Element> __device__ inline void put_at(Element *at, bool add, float value)
{
    set_at(at, add ? wide(*at) + value : value);
}

/* What put_at() adds to, loaded ahead of it. */
template <typename Element> __device__ inline float there_at(const Element *at, bool add)
{
    return add ? wide(*at) : 0;
}

/* Call body with a value of the element's type, from which it deduces its types. */
template <typename Body> void with_element(enum element element, Body body)
{
    if (element == ELEMENT_BF16)
        body(bf16());
    else
        body(float());
}

/* Run the instance of a kernel for the element of the call. */
template <void WIDE(const struct kernel_call *), void NARROW(const struct kernel_call *)>
void either(const struct kernel_call *call)
{
    if (call->element == ELEMENT_BF16)
        NARROW(call);
    else
        WIDE(call);
}
#define EITHER(kernel) either<kernel<float>, kernel<bf16>>

/* Packs: neighbouring numbers that a thread loads and stores together. Memory delivers most when
 * each thread asks for 16 bytes at once; which is possible if all addresses are multiples of that.
 * Kernels that do so have a parameter N, how many numbers a thread takes: PACK, or 1 for arrays
 * that cannot be taken apart in packs. */

#define PACK 8
#define PACK_ALIGNMENT 16

/* As they lie in memory. */
template <typename E, int N>
struct alignas(N * sizeof(E) < PACK_ALIGNMENT ? N * sizeof(E) : PACK_ALIGNMENT) pack {
    E of[N];
};

/* As they are computed with. */
template <int N> struct numbers {
    float of[N];
};

template <int N, typename E> __device__ inline numbers<N> widen(const struct pack<E, N> &packed)
{
    struct numbers<N> numbers;
    for (int k = 0; k < N; k++)
        numbers.of[k] = wide(packed.of[k]);
    return numbers;
}

/* In words of 16 bytes, where a pack has such: left to itself, the compiler stores some packs
 * number by number. */
template <int N, typename E> __device__ inline pack<E, N> pack_at(const E *at)
{
    struct pack<E, N> packed;
    if constexpr (sizeof packed % sizeof(uint4) == 0) {
        uint4 words[sizeof packed / sizeof(uint4)];
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            words[i] = ((const uint4 *)(const void *)at)[i];
        memcpy(&packed, words, sizeof packed);
    } else {
        packed = *(const struct pack<E, N> *)(const void *)at;
    }
    return packed;
}

template <int N, typename E> __device__ inline void pack_set(E *at, const struct pack<E, N> &packed)
{
    if constexpr (sizeof packed % sizeof(uint4) == 0) {
        uint4 words[sizeof packed / sizeof(uint4)];
        memcpy(words, &packed, sizeof packed);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            ((uint4 *)(void *)at)[i] = words[i];
    } else {
        *(struct pack<E, N> *)(void *)at = packed;
    }
}

template <int N, typename E> __device__ inline numbers<N> numbers_at(const E *at)
{
    return widen(pack_at<N>(at));
}

template <int N, typename E>
__device__ inline void numbers_set(E *at, const struct numbers<N> &numbers)
{
    struct pack<E, N> packed;
    for (int k = 0; k < N; k++)
        set_at(&packed.of[k], numbers.of[k]);
    pack_set<N>(at, packed);
}

/* Whether arrays, or rows of this many numbers each, can be taken apart in packs. */
inline bool packs(int64_t count, std::initializer_list<const void *> arrays)
{
    uintptr_t bits = count % PACK == 0 ? 0 : 1;
    for (const void *array : arrays)
        bits |= (uintptr_t)array % PACK_ALIGNMENT;
    return bits == 0;
}

/* Store into arrays, number by number, what `compute` makes of it: results[i] = compute(i), with
 * whole packs where that is possible. compute.template at<N>(i) is given the first of N numbers and
 * returns struct numbers<N>. */
template <typename E, typename Compute, int N>
__global__ void each_pack(Compute compute, E *results, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        numbers_set<N>(&results[i * N], compute.template at<N>(i * N));
}

template <typename E, typename Compute>
void launch_packs(const char *what, Compute compute, E *results, int64_t count,
                  std::initializer_list<const void *> arrays)
{
    if (packs(count, arrays) && packs(count, {results}))
        launch_elements(what, each_pack<E, Compute, PACK>, count / PACK, compute, results,
                        count / PACK);
    else
        launch_elements(what, each_pack<E, Compute, 1>, count, compute, results, count);
}

#endif
