/* reduce.c - sums over members, a block at a time so that the running sum stays in the cache. */
#include "worker/collectives/reduce.h"

#include <string.h>

#define BLOCK 1024

static void fold_sum(float *restrict into, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] += from[i];
}

static void fold_max(float *restrict into, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = from[i] > into[i] || from[i] != from[i] ? from[i] : into[i];
}

void collective_reduce(float *destination, const float *const *sources, int members, size_t count,
                       enum reduction reduction)
{
    float block[BLOCK];
    for (size_t low = 0; low < count; low += BLOCK) {
        size_t length = count - low < BLOCK ? count - low : BLOCK;
        memcpy(block, sources[0] + low, length * sizeof *block);
        for (int i = 1; i < members; i++)
            if (reduction == REDUCTION_SUM)
                fold_sum(block, sources[i] + low, length);
            else
                fold_max(block, sources[i] + low, length);
        memcpy(destination + low, block, length * sizeof *block);
    }
}
