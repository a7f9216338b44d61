/* silence.c - what passes with time alone: a worker that is not heard of becomes suspect, is then
 * lost and finally forgotten, unless it was the coordinator that did not listen. */
#include <errno.h>
#include <stdio.h>

#include "common/base/units.h"
#include "coordinator/membership/internal.h"

#define SUSPECT_HEARTBEATS 3

int membership_config_check(const struct membership_config *config, struct error *err)
{
    if (config->heartbeat_ms == 0)
        return error_set(err, -EINVAL, "heartbeat: it must be at least 1ms");
    if (config->dead_ms <= SUSPECT_HEARTBEATS * config->heartbeat_ms)
        return error_set(err, -EINVAL,
                         "a worker is lost after %llu ms: it must be more than %d heartbeats of "
                         "%llu ms",
                         (unsigned long long)config->dead_ms, SUSPECT_HEARTBEATS,
                         (unsigned long long)config->heartbeat_ms);
    return 0;
}

/* When the worker's next change is due if nothing else happens. */
static uint64_t next_ms(const struct membership *membership, const struct worker *worker)
{
    const struct membership_config *config = &membership->config;
    if (worker->dead)
        return worker->draining ? UINT64_MAX : worker->lost_ms + config->forget_ms;
    if (worker->suspect)
        return worker->heard_ms + config->dead_ms;
    return worker->heard_ms + SUSPECT_HEARTBEATS * config->heartbeat_ms;
}

uint64_t membership_next_ms(const struct membership *membership)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < membership->count; i++) {
        uint64_t next = next_ms(membership, membership->workers[i]);
        least = next < least ? next : least;
    }
    return least;
}

void membership_excuse(struct membership *membership, uint64_t busy_ms, uint64_t now_ms)
{
    if (busy_ms < membership->config.heartbeat_ms)
        return;
    membership->busy_until_ms = now_ms;
    for (size_t i = 0; i < membership->count; i++) {
        struct worker *worker = membership->workers[i];
        uint64_t heard_ms = worker->heard_ms + busy_ms;
        if (!worker->dead)
            worker->heard_ms = heard_ms < now_ms ? heard_ms : now_ms;
    }
}

/* Returns true if the worker has to be forgotten. */
static bool expire(const struct membership *membership, struct worker *worker, uint64_t now_ms,
                   struct membership_events *events)
{
    if (now_ms < next_ms(membership, worker))
        return false;
    if (worker->dead)
        return true;
    char silence[32], reason[64];
    units_print_seconds(silence, sizeof silence, (double)(now_ms - worker->heard_ms) / 1000);
    snprintf(reason, sizeof reason, "silent for %s", silence);
    if (!worker->suspect) {
        worker->suspect = true;
        membership_announce(events, MEMBERSHIP_SUSPECTED, worker, reason);
    }
    if (now_ms >= next_ms(membership, worker))
        worker_lose(worker, now_ms, reason, events);
    return false;
}

void membership_expire(struct membership *membership, uint64_t now_ms,
                       struct membership_events *events)
{
    size_t kept = 0;
    for (size_t i = 0; i < membership->count; i++) {
        struct worker *worker = membership->workers[i];
        if (!expire(membership, worker, now_ms, events)) {
            membership->workers[kept++] = worker;
            continue;
        }
        membership_announce(events, MEMBERSHIP_FORGOTTEN, worker, "");
        worker_destroy(worker);
    }
    membership->count = kept;
}

void membership_disconnect(struct membership *membership, const char *name, uint64_t instance,
                           uint64_t now_ms, struct membership_events *events)
{
    struct worker *worker = membership_lookup(membership, name);
    bool deaf = membership->busy_until_ms > 0 &&
                now_ms < membership->busy_until_ms + membership->config.heartbeat_ms;
    if (worker && !worker->dead && worker->instance == instance && !deaf)
        worker_lose(worker, now_ms, "its connection closed", events);
}

void membership_expel(struct membership *membership, const char *name, const char *reason,
                      uint64_t now_ms, struct membership_events *events)
{
    struct worker *worker = membership_lookup(membership, name);
    if (worker && !worker->dead)
        worker_lose(worker, now_ms, reason, events);
}
