/* views.c - reading membership: workers by name, their records, and words for what is seen. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/membership/internal.h"

size_t membership_count(const struct membership *membership)
{
    return membership->count;
}

const struct worker *membership_at(const struct membership *membership, size_t index)
{
    assert(index < membership->count);
    return membership->workers[index];
}

const struct worker *membership_find(const struct membership *membership, const char *name)
{
    return membership_lookup(membership, name);
}

struct worker *worker_copy(const struct worker *worker)
{
    size_t count = worker->report->device_count;
    struct worker *copy = xcalloc(1, sizeof *copy);
    *copy = *worker;
    copy->report = hardware_report_copy(worker->report);
    copy->holders = xcalloc(count, sizeof *copy->holders);
    memcpy(copy->holders, worker->holders, count * sizeof *copy->holders);
    return copy;
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    hardware_report_destroy(worker->report);
    free(worker->holders);
    free(worker);
}

enum worker_state worker_state(const struct worker *worker)
{
    if (worker->dead)
        return WORKER_DEAD;
    if (worker->suspect)
        return WORKER_SUSPECT;
    return worker->draining ? WORKER_DRAINING : WORKER_ALIVE;
}

const char *worker_state_name(enum worker_state state)
{
    static const char *const names[] = {
        [WORKER_ALIVE] = "ALIVE",
        [WORKER_SUSPECT] = "SUSPECT",
        [WORKER_DRAINING] = "DRAINING",
        [WORKER_DEAD] = "DEAD",
    };
    return names[state];
}

const char *membership_event_name(enum membership_event_kind kind)
{
    static const char *const names[] = {
        [MEMBERSHIP_JOINED] = "joined",       [MEMBERSHIP_CHANGED] = "changed",
        [MEMBERSHIP_SUSPECTED] = "suspected", [MEMBERSHIP_RECOVERED] = "recovered",
        [MEMBERSHIP_DRAINING] = "draining",   [MEMBERSHIP_UNDRAINED] = "undrained",
        [MEMBERSHIP_LOST] = "lost",           [MEMBERSHIP_FORGOTTEN] = "forgotten",
    };
    return names[kind];
}
