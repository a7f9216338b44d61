/* library.c - checks and names members and peers, cuts, and sums: over members, a block at a time,
 * so that running sums stay in the cache. */
#include "worker/collectives/library.h"

#include "common/base/memory.h"
#include "common/base/vectorised.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 1024

int collective_members_check(const int *ranks, int count, int rank, int world, int *me,
                             struct error *err)
{
    if (count < 1)
        return error_set(err, -EINVAL, "a group of %d ranks: at least 1 is needed", count);
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= world)
            return error_set(err, -EINVAL, "a group of rank %d: there are %d ranks", ranks[i],
                             world);
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return error_set(err, -EINVAL, "a group with rank %d twice", ranks[i]);
        if (ranks[i] == rank)
            found = i;
    }
    if (found < 0) {
        char *name = collective_members_print(ranks, count);
        error_set(err, -EINVAL, "rank %d is no member of group %s", rank, name);
        free(name);
        return -EINVAL;
    }
    *me = found;
    return 0;
}

char *collective_members_print(const int *ranks, int count)
{
    size_t size = (size_t)count * 12 + 3, used = 0;
    char *text = xcalloc(size, 1);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%c%d", i ? ',' : '{', ranks[i]);
    snprintf(text + used, size - used, "}");
    return text;
}

int collective_peer_check(const char *call, int peer, int rank, int world, struct error *err)
{
    if (peer < 0 || peer >= world)
        return error_set(err, -EINVAL, "%s: no rank %d among %d", call, peer, world);
    if (peer == rank)
        return error_set(err, -EINVAL, "%s: rank %d is this rank itself", call, peer);
    return 0;
}

void collective_chunk(size_t count, int members, int index, size_t *low, size_t *high)
{
    /* Written so that count * index cannot overflow. */
    size_t whole = count / (size_t)members, rest = count % (size_t)members;
    *low = whole * (size_t)index + rest * (size_t)index / (size_t)members;
    *high = whole * (size_t)(index + 1) + rest * (size_t)(index + 1) / (size_t)members;
}

size_t collective_total(const size_t *counts, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += counts[i];
    return total;
}

VECTORISED static void reduce_sum(float *restrict into, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] += from[i];
}

VECTORISED static void reduce_max(float *restrict into, const float *restrict from, size_t count)
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

/* Elements from `low` on, as f32: in place if they are f32, otherwise widened into `scratch`. */
static const float *wide(enum element element, const void *source, size_t low, size_t count,
                         float *scratch)
{
    if (element == ELEMENT_F32)
        return (const float *)source + low;
    widen(scratch, (const uint16_t *)source + low, count);
    return scratch;
}

void collective_reduce(enum element element, void *destination, const void *const *sources,
                       int members, size_t count, enum reduction reduction)
{
    float block[BLOCK], scratch[BLOCK];
    for (size_t low = 0; low < count; low += BLOCK) {
        size_t length = count - low < BLOCK ? count - low : BLOCK;
        memcpy(block, wide(element, sources[0], low, length, scratch), length * sizeof *block);
        for (int i = 1; i < members; i++)
            if (reduction == REDUCTION_SUM)
                reduce_sum(block, wide(element, sources[i], low, length, scratch), length);
            else
                reduce_max(block, wide(element, sources[i], low, length, scratch), length);
        if (element == ELEMENT_F32)
            memcpy((float *)destination + low, block, length * sizeof *block);
        else
            narrow((uint16_t *)destination + low, block, length);
    }
}
