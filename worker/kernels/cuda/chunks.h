/* chunks.h - many arrays in one launch: blocks take chunks of them, one after the other. */
#ifndef WORKER_KERNELS_CUDA_CHUNKS_H
#define WORKER_KERNELS_CUDA_CHUNKS_H

#include "worker/kernels/cuda/launch.h"

#define CHUNK (8 * THREADS) /* elements of one array that a block takes at a time */

inline int64_t chunks_of(int64_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

/* Call body(array, i) for each element of all arrays, which have `chunks` chunks together. Arrays
 * are structs with a count and chunks_end, the chunks of all arrays up to and with this one. */
template <typename Array, typename Body>
__device__ void each_chunk(const Array *arrays, int64_t chunks, Body body)
{
    int at = 0;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        while (chunk >= arrays[at].chunks_end)
            at++;
        const Array &array = arrays[at];
        int64_t left = array.chunks_end - chunk; /* the last chunk may be shorter */
        int64_t begin = ((array.count + CHUNK - 1) / CHUNK - left) * CHUNK;
        int64_t end = begin + CHUNK < array.count ? begin + CHUNK : array.count;
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS)
            body(array, i);
    }
}

#endif
