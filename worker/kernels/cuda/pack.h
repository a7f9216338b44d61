/* pack.h - neighbouring numbers that a thread loads and stores together. Memory delivers most when
 * each thread asks for 16 bytes at once; which is possible if all addresses are multiples of that.
 * Kernels that do so have a parameter N, how many numbers a thread takes: PACK, or 1 for arrays
 * that cannot be taken apart in packs. */
#ifndef WORKER_KERNELS_CUDA_PACK_H
#define WORKER_KERNELS_CUDA_PACK_H

#include "worker/kernels/cuda/launch.h"

#include <cstring>
#include <initializer_list>

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
