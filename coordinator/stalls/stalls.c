/* stalls.c - one entry per rank of the epoch. */
#include "coordinator/stalls/stalls.h"

#include "common/base/memory.h"

#include <stdlib.h>

void stalls_finish(struct stalls *stalls)
{
    free(stalls->ranks);
    free(stalls->heard_ms);
    *stalls = (struct stalls){0};
}

static void renew(struct stalls *stalls, uint32_t epoch, size_t count)
{
    stalls_finish(stalls);
    stalls->epoch = epoch;
    stalls->count = count;
    stalls->ranks = xcalloc(count, sizeof *stalls->ranks);
    stalls->heard_ms = xcalloc(count, sizeof *stalls->heard_ms);
}

void stalls_hear(struct stalls *stalls, uint32_t epoch, size_t count, size_t rank,
                 const struct stall_position *position, uint64_t now_ms)
{
    if (stalls->epoch != epoch || stalls->count != count)
        renew(stalls, epoch, count);
    stalls->ranks[rank] = position ? *position : (struct stall_position){0};
    stalls->heard_ms[rank] = now_ms;
}

static void forget_old(struct stalls *stalls, uint64_t fresh_ms, uint64_t now_ms)
{
    for (size_t i = 0; i < stalls->count; i++)
        if (now_ms > stalls->heard_ms[i] + fresh_ms)
            stalls->ranks[i].known = false;
}

bool stalls_judge(struct stalls *stalls, const struct stall_limits *limits, bool begins,
                  uint64_t now_ms, struct stall_verdict *out)
{
    const struct stall_verdict *told = &stalls->told;
    forget_old(stalls, limits->fresh_ms, now_ms);
    if (told->ends || !stall_judge(stalls->ranks, stalls->count, limits->held_ms, begins, out))
        return false;
    if (told->kind == out->kind && told->rank == out->rank && told->step == out->step &&
        told->ends == out->ends)
        return false;
    stalls->told = *out;
    return true;
}
