/* positions.c - where an executor is that makes no progress. This is read from its trail and from
 * the kernel, so the executor need not do anything for it, and may even be stopped. One that merely
 * waits for a processor is taken to make progress, slowly. */
#include "common/base/memory.h"
#include "worker/daemon/internal.h"

/* Longer in one call is worth reporting; most instructions take less. */
#define POSITION_MS 1000

static void tell_call(const struct trail_position *at, Gimbal__RankPosition *out)
{
    out->call = xstrdup(at->call.name);
    out->inside = at->inside;
    out->exchanges = at->inside && at->call.kind == TRAIL_EXCHANGES;
    out->group = at->call.group;
    out->number = at->call.number;
    out->step = at->call.step;
    out->awaits = (uint32_t)(at->peer + 1);
    out->past_groups = xcalloc(at->past_count, sizeof *out->past_groups);
    out->past_numbers = xcalloc(at->past_count, sizeof *out->past_numbers);
    for (size_t i = 0; i < at->past_count; i++) {
        out->past_groups[i] = at->past[i].group;
        out->past_numbers[i] = at->past[i].number;
    }
    out->n_past_groups = out->n_past_numbers = at->past_count;
}

/* When its process was first seen stopped; 0: it is not. */
static uint64_t look_at(struct process *process, uint64_t now_ms)
{
    child_look(&process->look, process->child.pid, now_ms);
    if (!process->look.stopped)
        process->stopped_ms = 0;
    else if (process->stopped_ms == 0)
        process->stopped_ms = now_ms;
    return process->stopped_ms;
}

Gimbal__RankPosition *processes_position(struct daemon *daemon, uint64_t rank)
{
    struct process *process = processes_find(daemon, rank);
    struct trail_position at;
    if (!process)
        return NULL;
    uint64_t now_ms = daemon_now_ms(), stopped_ms = look_at(process, now_ms);
    /* A call from the previous epoch says nothing. */
    bool known = trail_read(process->child.trail, &at) && at.call.entered_ms >= process->began_ms;
    uint64_t held_ms = known && now_ms > at.call.entered_ms ? now_ms - at.call.entered_ms : 0;
    if (process->look.starved || (stopped_ms == 0 && held_ms < POSITION_MS))
        return NULL;
    Gimbal__RankPosition *position = xcalloc(1, sizeof *position);
    gimbal__rank_position__init(position);
    position->stopped = stopped_ms > 0;
    position->stopped_ms = stopped_ms > 0 ? now_ms - stopped_ms : 0;
    position->held_ms = held_ms;
    if (known)
        tell_call(&at, position);
    return position;
}
