/* stalls.c - one entry per rank of the epoch, and the chain of those that wait for each other. */
#include "coordinator/stalls/stalls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define NOBODY SIZE_MAX

const char *stall_kind_name(enum stall_kind kind)
{
    static const char *const names[] = {
        [STALL_NONE] = "None",
        [STALL_STOPPED] = "Stopped",
        [STALL_ABSENT] = "Absent",
        [STALL_CUT_OFF] = "CutOff",
    };
    return names[kind];
}

/* Whether it is known to be in one place, and for long enough. */
static bool rank_is_held(const struct stall_position *rank, uint64_t limit_ms)
{
    return rank->known && rank->held_ms >= limit_ms;
}

/* The rank it waits for, or NOBODY. */
static size_t rank_next(const struct stall_position *ranks, size_t count, size_t at)
{
    const struct stall_position *rank = &ranks[at];
    bool waits = rank->inside && rank->exchanges && !rank->stopped && rank->awaits >= 0 &&
                 (size_t)rank->awaits < count;
    return waits ? (size_t)rank->awaits : NOBODY;
}

/* From a waiting rank to the one it waits for in the end; NOBODY if the chain ends at a rank that
 * moves on. *circle: the chain is a cycle, and the result is on it. */
static size_t rank_follow(const struct stall_position *ranks, size_t count, size_t from,
                          uint64_t limit_ms, bool *circle)
{
    size_t at = from;
    *circle = false;
    for (size_t i = 0; i <= count; i++) {
        if (!rank_is_held(&ranks[at], limit_ms))
            return NOBODY;
        size_t next = rank_next(ranks, count, at);
        if (next == NOBODY)
            return at;
        at = next;
    }
    *circle = true;
    return at;
}

/* How many ranks wait for it directly. */
static size_t rank_count_waiting(const struct stall_position *ranks, size_t count, size_t rank)
{
    size_t waiting = 0;
    for (size_t i = 0; i < count; i++)
        waiting += ranks[i].known && rank_next(ranks, count, i) == rank;
    return waiting;
}

/* Of the cycle that `from` is on, the rank that most others wait for. */
static size_t cycle_busiest(const struct stall_position *ranks, size_t count, size_t from)
{
    size_t best = from;
    for (size_t at = rank_next(ranks, count, from); at != from; at = rank_next(ranks, count, at))
        if (rank_count_waiting(ranks, count, at) > rank_count_waiting(ranks, count, best))
            best = at;
    return best;
}

static bool rank_has_come(const struct stall_position *rank, uint64_t group, uint64_t number)
{
    for (size_t i = 0; i < rank->past_count; i++)
        if (rank->past[i].group == group && rank->past[i].number >= number)
            return true;
    return false;
}

/* A rank that waits for it, whose call the verdict names; NOBODY. */
static size_t stall_find_waiting(const struct stall_position *ranks, size_t count, size_t rank)
{
    for (size_t i = 0; i < count; i++)
        if (i != rank && ranks[i].known && rank_next(ranks, count, i) == rank)
            return i;
    return NOBODY;
}

/* Count all ranks that wait for anybody: in the end they wait for this one. */
static size_t stall_count_held_up(const struct stall_position *ranks, size_t count, size_t by)
{
    size_t held = 0;
    for (size_t i = 0; i < count; i++)
        held += i != by && ranks[i].known && rank_next(ranks, count, i) != NOBODY;
    return held;
}

static enum stall_kind stall_kind_of(const struct stall_position *culprit,
                                     const struct stall_position *waiting)
{
    if (culprit->stopped)
        return STALL_STOPPED;
    return rank_has_come(culprit, waiting->group, waiting->number) ? STALL_CUT_OFF : STALL_ABSENT;
}

/* Describe where the culprit itself is. Steps are counted from 1 for people. */
static void verdict_print_own(const struct stall_position *culprit, char *out, size_t size)
{
    if (!culprit->call[0])
        snprintf(out, size, "it has not started its first step");
    else
        snprintf(out, size, "it is %s %s of step %" PRIu64, culprit->inside ? "in" : "after",
                 culprit->call, culprit->step + 1);
}

static void verdict_print(const struct stall_position *culprit, struct stall_verdict *out)
{
    static const char *const why[] = {
        [STALL_NONE] = "",
        [STALL_STOPPED] = "its process is stopped",
        [STALL_ABSENT] = "it has not arrived there",
        [STALL_CUT_OFF] = "it has arrived there, but nothing that it sends does",
    };
    char own[128], who[48], where[128] = "";
    verdict_print_own(culprit, own, sizeof own);
    snprintf(who, sizeof who, out->waiting == 0 ? "has held up the job" : "has held up %zu rank%s",
             out->waiting, out->waiting == 1 ? "" : "s");
    if (out->number > 0)
        snprintf(where, sizeof where, " in %s (step %" PRIu64 ", call %" PRIu64 ")", out->call,
                 out->step + 1, out->number);
    snprintf(out->words, sizeof out->words, "%s%s for %.1f s: %s; %s", who, where,
             (double)out->held_ms * 1e-3, why[out->kind], own);
}

static void verdict_fill(const struct stall_position *ranks, size_t count, size_t culprit,
                         struct stall_verdict *out)
{
    size_t waiting = stall_find_waiting(ranks, count, culprit);
    const struct stall_position *own = &ranks[culprit];
    const struct stall_position *call = waiting == NOBODY ? own : &ranks[waiting];
    *out = (struct stall_verdict){
        .kind = stall_kind_of(own, call),
        .rank = culprit,
        .ends = own->stopped || own->inside,
        .waiting = stall_count_held_up(ranks, count, culprit),
        .held_ms = own->stopped && own->stopped_ms > own->held_ms ? own->stopped_ms : own->held_ms,
        .step = call->step,
        .number = call->exchanges ? call->number : 0,
    };
    memcpy(out->call, call->call, sizeof out->call);
    verdict_print(own, out);
}

/* A stopped process is to blame whatever the others do; of several the first. */
static size_t stall_find_stopped(const struct stall_position *ranks, size_t count,
                                 uint64_t limit_ms)
{
    for (size_t i = 0; i < count; i++)
        if (ranks[i].known && ranks[i].stopped && ranks[i].stopped_ms >= limit_ms)
            return i;
    return NOBODY;
}

bool stall_judge(const struct stall_position *ranks, size_t count, uint64_t limit_ms, bool begins,
                 struct stall_verdict *out)
{
    size_t culprit = stall_find_stopped(ranks, count, limit_ms);
    for (size_t i = 0; i < count && culprit == NOBODY && !begins; i++) {
        bool circle;
        if (!rank_is_held(&ranks[i], limit_ms) || rank_next(ranks, count, i) == NOBODY)
            continue;
        culprit = rank_follow(ranks, count, i, limit_ms, &circle);
        if (circle)
            culprit = cycle_busiest(ranks, count, culprit);
        else if (culprit != NOBODY && ranks[culprit].stopped)
            culprit = NOBODY; /* not for long enough yet */
    }
    if (culprit == NOBODY)
        return false;
    verdict_fill(ranks, count, culprit, out);
    return true;
}

void stalls_finish(struct stalls *stalls)
{
    free(stalls->ranks);
    free(stalls->heard_ms);
    *stalls = (struct stalls){0};
}

static void stalls_renew(struct stalls *stalls, uint32_t epoch, size_t count)
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
        stalls_renew(stalls, epoch, count);
    stalls->ranks[rank] = position ? *position : (struct stall_position){0};
    stalls->heard_ms[rank] = now_ms;
}

static void stalls_forget_old(struct stalls *stalls, uint64_t fresh_ms, uint64_t now_ms)
{
    for (size_t i = 0; i < stalls->count; i++)
        if (now_ms > stalls->heard_ms[i] + fresh_ms)
            stalls->ranks[i].known = false;
}

bool stalls_judge(struct stalls *stalls, const struct stall_limits *limits, bool begins,
                  uint64_t now_ms, struct stall_verdict *out)
{
    const struct stall_verdict *told = &stalls->told;
    stalls_forget_old(stalls, limits->fresh_ms, now_ms);
    if (told->ends || !stall_judge(stalls->ranks, stalls->count, limits->held_ms, begins, out))
        return false;
    if (told->kind == out->kind && told->rank == out->rank && told->step == out->step &&
        told->ends == out->ends)
        return false;
    stalls->told = *out;
    return true;
}
