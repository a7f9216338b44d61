/* devices.c - grants devices to jobs, each to one at a time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/membership/internal.h"

/* See struct device_view. */
static double count_busy(const struct membership *membership, const struct worker *worker,
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
                view->busy = count_busy(membership, worker, k);
            view->grantable = worker_state(worker) == WORKER_ALIVE;
            view->draining = worker->draining;
        }
    }
    *out = views;
    return count;
}

/* The holder entry of a device; NULL if the device is gone. */
static char *holder_of(struct membership *membership, const struct device_ref *ref)
{
    struct worker *worker = membership_lookup(membership, ref->worker);
    if (!worker || worker->dead || worker->instance != ref->instance ||
        ref->index >= worker->report->device_count)
        return NULL;
    return worker->holders[ref->index];
}

/* The holder entries of all refs, if the job may have all of them. */
static int find_holders(struct membership *membership, const char *job,
                        const struct device_ref *refs, size_t count, char **holders,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        holders[i] = holder_of(membership, &refs[i]);
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

static void release(struct membership *membership, const char *job)
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
    int rc = find_holders(membership, job, refs, count, holders, err);
    if (rc == 0) {
        release(membership, job);
        for (size_t i = 0; i < count; i++)
            snprintf(holders[i], HOLDER_SIZE, "%s", job);
    }
    free(holders);
    return rc;
}
