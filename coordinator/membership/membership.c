/* membership.c - the life of workers: they report, are heard of, are lost and come back; and which
 * job has which of their devices.
 *
 * worker_lose() is the only place where a worker dies and worker_revive() the only one where it is
 * born. Both preserve these invariants: a dead worker's instance is never alive again; a name has
 * one living instance; holders[] has one entry per device of the report.
 *
 * With time alone a worker that is not heard of becomes suspect, is then lost and finally
 * forgotten, unless it was the coordinator that did not listen. */
#include "coordinator/membership/membership.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"

#define SUSPECT_HEARTBEATS 3

struct membership {
    struct membership_config config;
    struct worker **workers; /* sorted by name */
    size_t count, capacity;
    uint64_t busy_until_ms; /* 0: the coordinator has not been busy for long */
};

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
        return WORKER_LOST;
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
        [WORKER_LOST] = "LOST",
    };
    return names[state];
}

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

struct membership *membership_create(const struct membership_config *config)
{
    assert(membership_config_check(config, NULL) == 0);
    struct membership *membership = xcalloc(1, sizeof *membership);
    membership->config = *config;
    return membership;
}

void membership_destroy(struct membership *membership)
{
    if (!membership)
        return;
    for (size_t i = 0; i < membership->count; i++)
        worker_destroy(membership->workers[i]);
    free(membership->workers);
    free(membership);
}

/* The index of the name, or where it would be inserted. */
static size_t membership_place(const struct membership *membership, const char *name, bool *found)
{
    size_t low = 0, high = membership->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(membership->workers[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

/* Like membership_find(), but writable. */
static struct worker *membership_lookup(const struct membership *membership, const char *name)
{
    bool found;
    size_t index = membership_place(membership, name, &found);
    return found ? membership->workers[index] : NULL;
}

/* Takes ownership of a record whose name is new. */
static void membership_insert(struct membership *membership, struct worker *worker)
{
    bool found;
    size_t index = membership_place(membership, worker->name, &found);
    assert(!found);
    membership->workers = grow(membership->workers, membership->count, &membership->capacity,
                               sizeof(*membership->workers));
    memmove(&membership->workers[index + 1], &membership->workers[index],
            (membership->count - index) * sizeof(*membership->workers));
    membership->workers[index] = worker;
    membership->count++;
}

/* Add a record without an instance, dead until it is revived. */
static struct worker *membership_add(struct membership *membership, const char *name)
{
    struct worker *worker = xcalloc(1, sizeof *worker);
    snprintf(worker->name, sizeof worker->name, "%s", name);
    worker->dead = true;
    membership_insert(membership, worker);
    return worker;
}

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

static void membership_announce(struct membership_events *events, enum membership_event_kind kind,
                                const struct worker *worker, const char *reason)
{
    events->items = grow(events->items, events->count, &events->capacity, sizeof *events->items);
    struct membership_event *event = &events->items[events->count++];
    *event = (struct membership_event){.kind = kind, .instance = worker->instance};
    snprintf(event->worker, sizeof event->worker, "%s", worker->name);
    snprintf(event->reason, sizeof event->reason, "%s", reason);
}

/* End a worker's life. */
static void worker_lose(struct worker *worker, uint64_t now_ms, const char *reason,
                        struct membership_events *events)
{
    worker->dead = true;
    worker->suspect = false;
    worker->lost_ms = now_ms;
    snprintf(worker->lost_reason, sizeof worker->lost_reason, "%s", reason);
    membership_announce(events, MEMBERSHIP_LOST, worker, reason);
}

/* Start a new life of a dead record with this instance and report. */
static void worker_revive(struct worker *worker, uint64_t instance,
                          const struct hardware_report *report, uint64_t now_ms)
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

static void worker_hear(struct worker *worker, bool follows, uint64_t now_ms,
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
static int worker_check_instance(const struct worker *worker, uint64_t instance, struct error *err)
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
static int worker_check_devices(const struct worker *worker, const struct hardware_report *report,
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

static int worker_report_again(struct worker *worker, const struct hardware_report *report,
                               uint64_t now_ms, struct membership_events *events, struct error *err)
{
    int rc = worker_check_devices(worker, report, err);
    if (rc < 0)
        return rc;
    worker_hear(worker, true, now_ms, events);
    if (hardware_report_equal(worker->report, report))
        return 0;
    hardware_report_destroy(worker->report);
    worker->report = hardware_report_copy(report);
    membership_announce(events, MEMBERSHIP_CHANGED, worker, "");
    return 0;
}

/* The process of the first worker may have ended without its closed connection having been noticed.
 * Then it is silent, and the second one, which asks again, soon gets its place. */
static int worker_refuse_second(const struct worker *worker, struct error *err)
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
        rc = worker_check_instance(worker, instance, err);
        if (rc < 0)
            return rc;
    }
    if (worker && !worker->dead && strcmp(worker->report->host, report->host) != 0)
        return error_set(err, -EEXIST,
                         "the name '%s' belongs to a living worker on host '%s', and this one is "
                         "on host '%s': start it with another --name",
                         report->node, worker->report->host, report->host);
    if (worker && !worker->dead && worker->instance == instance)
        return worker_report_again(worker, report, now_ms, events, err);
    if (worker && !worker->dead && !worker->suspect)
        return worker_refuse_second(worker, err);

    if (!worker)
        worker = membership_add(membership, report->node);
    if (!worker->dead)
        worker_lose(worker, now_ms, "it was restarted", events);
    worker_revive(worker, instance, report, now_ms);
    membership_announce(events, MEMBERSHIP_JOINED, worker, "");
    return 0;
}

void membership_hear(struct membership *membership, const char *name, uint64_t instance,
                     bool follows, uint64_t now_ms, struct membership_events *events)
{
    struct worker *worker = membership_lookup(membership, name);
    if (worker && !worker->dead && worker->instance == instance)
        worker_hear(worker, follows, now_ms, events);
}

int membership_heartbeat(struct membership *membership, const char *name, uint64_t instance,
                         uint64_t now_ms, struct membership_events *events, struct error *err)
{
    struct worker *worker = membership_lookup(membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "no worker '%s' has registered", name);
    int rc = worker_check_instance(worker, instance, err);
    if (rc < 0)
        return rc;
    if (worker->instance != instance)
        return error_set(err, -ENOENT, "this instance of worker '%s' has not registered", name);
    worker_hear(worker, true, now_ms, events);
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
    text_tame(words);
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

/* When the worker's next change is due if nothing else happens. */
static uint64_t worker_next_ms(const struct membership *membership, const struct worker *worker)
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
        uint64_t next = worker_next_ms(membership, membership->workers[i]);
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
static bool worker_expire(const struct membership *membership, struct worker *worker,
                          uint64_t now_ms, struct membership_events *events)
{
    if (now_ms < worker_next_ms(membership, worker))
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
    if (now_ms >= worker_next_ms(membership, worker))
        worker_lose(worker, now_ms, reason, events);
    return false;
}

void membership_expire(struct membership *membership, uint64_t now_ms,
                       struct membership_events *events)
{
    size_t kept = 0;
    for (size_t i = 0; i < membership->count; i++) {
        struct worker *worker = membership->workers[i];
        if (!worker_expire(membership, worker, now_ms, events)) {
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

/* See struct device_view. */
static double device_count_busy(const struct membership *membership, const struct worker *worker,
                                size_t device)
{
    const struct hardware_device *here = &worker->report->devices[device];
    const char *own = worker->holders[device];
    double busy = 0;
    for (size_t i = 0; i < membership->count && here->kind == HARDWARE_CPU; i++) {
        const struct worker *other = membership->workers[i];
        if (other->dead || strcmp(other->report->host, worker->report->host) != 0)
            continue;
        for (size_t k = 0; k < other->report->device_count; k++)
            if (other->holders[k][0] && strcmp(other->holders[k], own) != 0 &&
                other->report->devices[k].kind == HARDWARE_CPU)
                busy += hardware_overlap(here->cpuset, other->report->devices[k].cpuset);
    }
    return busy;
}

size_t membership_devices(const struct membership *membership, struct device_view **out)
{
    size_t count = 0, most = 0;
    for (size_t i = 0; i < membership->count; i++)
        most += membership->workers[i]->dead ? 0 : membership->workers[i]->report->device_count;
    struct device_view *views = xcalloc(most, sizeof *views);
    for (size_t i = 0; i < membership->count; i++) {
        const struct worker *worker = membership->workers[i];
        for (size_t k = 0; !worker->dead && k < worker->report->device_count; k++) {
            struct device_view *view = &views[count++];
            memcpy(view->ref.worker, worker->name, sizeof worker->name);
            view->ref.instance = worker->instance;
            view->ref.index = (unsigned)k;
            view->host = worker->report->host;
            view->network_cards = worker->report->network_cards;
            view->host_bytes = worker->report->memory_bytes / worker->report->device_count;
            view->device = &worker->report->devices[k];
            view->holder = worker->holders[k];
            view->crowded = worker->report->oversubscribed;
            if (view->crowded)
                view->busy = device_count_busy(membership, worker, k);
            view->grantable = worker_state(worker) == WORKER_ALIVE;
            view->draining = worker->draining;
        }
    }
    *out = views;
    return count;
}

/* The holder entry of a device; NULL if the device is gone. */
static char *device_holder(struct membership *membership, const struct device_ref *ref)
{
    struct worker *worker = membership_lookup(membership, ref->worker);
    if (!worker || worker->dead || worker->instance != ref->instance ||
        ref->index >= worker->report->device_count)
        return NULL;
    return worker->holders[ref->index];
}

/* The holder entries of all refs, if the job may have all of them. */
static int membership_find_holders(struct membership *membership, const char *job,
                                   const struct device_ref *refs, size_t count, char **holders,
                                   struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        holders[i] = device_holder(membership, &refs[i]);
        if (!holders[i])
            return error_set(err, -ENOENT, "device %s/%u is gone", refs[i].worker, refs[i].index);
        if (holders[i][0] && strcmp(holders[i], job) != 0)
            return error_set(err, -EBUSY, "device %s/%u is held by %s", refs[i].worker,
                             refs[i].index, holders[i]);
        for (size_t k = 0; k < i; k++)
            if (holders[k] == holders[i])
                return error_set(err, -EINVAL, "device %s/%u is named twice", refs[i].worker,
                                 refs[i].index);
    }
    return 0;
}

static void membership_release(struct membership *membership, const char *job)
{
    for (size_t i = 0; i < membership->count; i++) {
        struct worker *worker = membership->workers[i];
        for (size_t k = 0; k < worker->report->device_count; k++)
            if (strcmp(worker->holders[k], job) == 0)
                worker->holders[k][0] = '\0';
    }
}

int membership_hold(struct membership *membership, const char *job, const struct device_ref *refs,
                    size_t count, struct error *err)
{
    if (job[0] == '\0' || strlen(job) >= HOLDER_SIZE)
        return error_set(err, -EINVAL, "'%s' is no job's id", job);
    char **holders = xcalloc(count, sizeof(*holders));
    int rc = membership_find_holders(membership, job, refs, count, holders, err);
    if (rc == 0) {
        membership_release(membership, job);
        for (size_t i = 0; i < count; i++)
            snprintf(holders[i], HOLDER_SIZE, "%s", job);
    }
    free(holders);
    return rc;
}
