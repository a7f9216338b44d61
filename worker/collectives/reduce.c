/* reduce.c - reductions over members, a block at a time, so that running sums stay in the cache. */
#include "worker/collectives/reduce.h"

#include "common/base/vectorised.h"

#include <string.h>

#define BLOCK 1024

VECTORISED static void fold_sum(float *restrict into, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] += from[i];
}

VECTORISED static void fold_max(float *restrict into, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = from[i] > into[i] || from[i] != from[i] ? from[i] : into[i];
}

VECTORISED static void widen(float *restrict out, const uint16_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = bf16_widen(from[i]);
}

VECTORISED static void narrow(uint16_t *restrict out, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = bf16_narrow(from[i]);
}

/* Elements from `low` on, as f32: in place if they are f32, otherwise widened into `room`. */
static const float *wide(enum element element, const void *source, size_t low, size_t count,
                         float *room)
{
    if (element == ELEMENT_F32)
        return (const float *)source + low;
    widen(room, (const uint16_t *)source + low, count);
    return room;
}

void collective_reduce(enum element element, void *destination, const void *const *sources,
                       int members, size_t count, enum reduction reduction)
{
    float block[BLOCK], room[BLOCK];
    for (size_t low = 0; low < count; low += BLOCK) {
        size_t length = count - low < BLOCK ? count - low : BLOCK;
        memcpy(block, wide(element, sources[0], low, length, room), length * sizeof *block);
        for (int i = 1; i < members; i++)
            if (reduction == REDUCTION_SUM)
                fold_sum(block, wide(element, sources[i], low, length, room), length);
            else
                fold_max(block, wide(element, sources[i], low, length, room), length);
        if (element == ELEMENT_F32)
            memcpy((float *)destination + low, block, length * sizeof *block);
        else
            narrow((uint16_t *)destination + low, block, length);
    }
}
