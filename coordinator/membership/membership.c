/* membership.c - the life of workers: they report, are heard of, are lost and come back.
 *
 * worker_lose() is the only place where a worker dies and revive() the only one where it is born.
 * Both preserve these invariants: a dead worker's instance is never alive again; a name has one
 * living instance; holders[] has one entry per device of the report. */
#include "coordinator/membership/membership.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/utf8.h"
#include "coordinator/membership/internal.h"

void membership_events_finish(struct membership_events *events)
{
    free(events->items);
    *events = (struct membership_events){0};
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

void membership_announce(struct membership_events *events, enum membership_event_kind kind,
                         const struct worker *worker, const char *reason)
{
    events->items = grow(events->items, events->count, &events->capacity, sizeof *events->items);
    struct membership_event *event = &events->items[events->count++];
    *event = (struct membership_event){.kind = kind, .instance = worker->instance};
    snprintf(event->worker, sizeof event->worker, "%s", worker->name);
    snprintf(event->reason, sizeof event->reason, "%s", reason);
}

void worker_lose(struct worker *worker, uint64_t now_ms, const char *reason,
                 struct membership_events *events)
{
    worker->dead = true;
    worker->suspect = false;
    worker->lost_ms = now_ms;
    snprintf(worker->lost_reason, sizeof worker->lost_reason, "%s", reason);
    membership_announce(events, MEMBERSHIP_LOST, worker, reason);
}

/* Start a new life of a dead record with this instance and report. */
static void revive(struct worker *worker, uint64_t instance, const struct hardware_report *report,
                   uint64_t now_ms)
{
    assert(worker->dead);
    if (worker->instance) {
        memmove(worker->past + 1, worker->past, sizeof worker->past - sizeof *worker->past);
        worker->past[0] = worker->instance;
    }
    hardware_report_destroy(worker->report);
    free(worker->holders);
    worker->report = hardware_report_copy(report);
    worker->holders = xcalloc(report->device_count, sizeof *worker->holders);
    worker->instance = instance;
    worker->heard_ms = now_ms;
    worker->dead = false;
}

static void hear(struct worker *worker, bool follows, uint64_t now_ms,
                 struct membership_events *events)
{
    if (now_ms > worker->heard_ms)
        worker->heard_ms = now_ms;
    if (worker->suspect && follows) {
        worker->suspect = false;
        membership_announce(events, MEMBERSHIP_RECOVERED, worker, "");
    }
}

/* 0 if the instance may speak for the worker or is new. An instance that was replaced may register
 * again as a new one only after its replacement is dead; otherwise the two would replace each other
 * forever. */
static int check_instance(const struct worker *worker, uint64_t instance, struct error *err)
{
    if (worker->instance == instance && worker->dead)
        return error_set(err, -ESTALE,
                         "worker '%s' was given up as lost; it has to register as a new instance",
                         worker->name);
    for (size_t i = 0; i < WORKER_PAST && worker->past[i]; i++)
        if (worker->past[i] == instance)
            return error_set(err, worker->dead ? -ESTALE : -EEXIST,
                             "worker '%s' was replaced by a newer instance of the same name",
                             worker->name);
    return 0;
}

/* A living instance keeps its devices, since grants refer to them by index. Their figures may
 * change. */
static int check_devices(const struct worker *worker, const struct hardware_report *report,
                         struct error *err)
{
    const struct hardware_report *old = worker->report;
    bool same = old->device_count == report->device_count;
    for (size_t i = 0; same && i < old->device_count; i++)
        same = old->devices[i].kind == report->devices[i].kind;
    if (!same)
        return error_set(err, -EINVAL,
                         "worker '%s' reports other devices than when it registered; it has to "
                         "restart to change them",
                         worker->name);
    return 0;
}

static int report_again(struct worker *worker, const struct hardware_report *report,
                        uint64_t now_ms, struct membership_events *events, struct error *err)
{
    int rc = check_devices(worker, report, err);
    if (rc < 0)
        return rc;
    hear(worker, true, now_ms, events);
    if (hardware_report_equal(worker->report, report))
        return 0;
    hardware_report_destroy(worker->report);
    worker->report = hardware_report_copy(report);
    membership_announce(events, MEMBERSHIP_CHANGED, worker, "");
    return 0;
}

/* The process of the first worker may have ended without its closed connection having been noticed.
 * Then it is silent, and the second one, which asks again, soon gets its place. */
static int refuse_second(const struct worker *worker, struct error *err)
{
    return error_set(err, -EEXIST,
                     "a worker named '%s' on this machine is alive: this one waits until that one "
                     "has ended; to have both, start it with another --name",
                     worker->name);
}

int membership_report(struct membership *membership, uint64_t instance,
                      const struct hardware_report *report, uint64_t now_ms,
                      struct membership_events *events, struct error *err)
{
    int rc = hardware_report_check(report, err);
    if (rc < 0)
        return rc;
    if (instance == 0)
        return error_set(err, -EINVAL, "worker '%s' has instance 0, which means none",
                         report->node);
    struct worker *worker = membership_lookup(membership, report->node);
    if (worker) {
        rc = check_instance(worker, instance, err);
        if (rc < 0)
            return rc;
    }
    if (worker && !worker->dead && strcmp(worker->report->host, report->host) != 0)
        return error_set(err, -EEXIST,
                         "the name '%s' belongs to a living worker on host '%s', and this one is "
                         "on host '%s': start it with another --name",
                         report->node, worker->report->host, report->host);
    if (worker && !worker->dead && worker->instance == instance)
        return report_again(worker, report, now_ms, events, err);
    if (worker && !worker->dead && !worker->suspect)
        return refuse_second(worker, err);

    if (!worker)
        worker = membership_add(membership, report->node);
    if (!worker->dead)
        worker_lose(worker, now_ms, "it was restarted", events);
    revive(worker, instance, report, now_ms);
    membership_announce(events, MEMBERSHIP_JOINED, worker, "");
    return 0;
}

void membership_hear(struct membership *membership, const char *name, uint64_t instance,
                     bool follows, uint64_t now_ms, struct membership_events *events)
{
    struct worker *worker = membership_lookup(membership, name);
    if (worker && !worker->dead && worker->instance == instance)
        hear(worker, follows, now_ms, events);
}

int membership_heartbeat(struct membership *membership, const char *name, uint64_t instance,
                         uint64_t now_ms, struct membership_events *events, struct error *err)
{
    struct worker *worker = membership_lookup(membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "no worker '%s' has registered", name);
    int rc = check_instance(worker, instance, err);
    if (rc < 0)
        return rc;
    if (worker->instance != instance)
        return error_set(err, -ENOENT, "this instance of worker '%s' has not registered", name);
    hear(worker, true, now_ms, events);
    return 0;
}

int membership_restore(struct membership *membership, const struct worker *stored, uint64_t now_ms,
                       struct error *err)
{
    int rc = hardware_report_check(stored->report, err);
    if (rc < 0)
        return rc;
    if (membership_lookup(membership, stored->name))
        return error_set(err, -EEXIST, "worker '%s' is known already", stored->name);
    struct worker *worker = worker_copy(stored);
    memset(worker->holders, 0, worker->report->device_count * sizeof *worker->holders);
    worker->suspect = !worker->dead;
    worker->heard_ms = worker->lost_ms = now_ms;
    membership_insert(membership, worker);
    return 0;
}

int membership_drain(struct membership *membership, const char *name, const char *reason,
                     struct membership_events *events, struct error *err)
{
    struct worker *worker = membership_lookup(membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "there is no node '%s'", name);
    char words[WORKER_REASON_SIZE];
    snprintf(words, sizeof words, "%s",
             worker->draining && !*reason ? worker->drain_reason : reason);
    utf8_tame(words);
    bool news = !worker->draining || strcmp(worker->drain_reason, words) != 0;
    worker->draining = true;
    snprintf(worker->drain_reason, sizeof worker->drain_reason, "%s", words);
    if (news)
        membership_announce(events, MEMBERSHIP_DRAINING, worker, words);
    return 0;
}

int membership_undrain(struct membership *membership, const char *name,
                       struct membership_events *events, struct error *err)
{
    struct worker *worker = membership_lookup(membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "there is no node '%s'", name);
    if (worker->draining)
        membership_announce(events, MEMBERSHIP_UNDRAINED, worker, "");
    worker->draining = false;
    worker->drain_reason[0] = '\0';
    return 0;
}
