/* spares.c - plans that are ready when a node is lost.
 *
 * A search that begins after the loss is downtime. So once an epoch has finished a step, the plans
 * that its job would need without any one of its nodes are searched while it trains, one after the
 * other and behind all other searches. Such a plan is for exactly the devices that it was searched
 * for, as they were then; in all other cases a search follows as usual. What was searched for more
 * devices (growth.c) is kept here as well, for the move that it leads to. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Jobs with more ranks get no spare plans: for them the question would be what to search first. */
#define NODES_MAX 64

static void remove_at(struct spares *spares, size_t index)
{
    struct spare *spare = &spares->items[index];
    planning_finish(&spare->planning);
    free(spare->devices);
    *spare = spares->items[--spares->count];
}

void spares_clear(struct spares *spares)
{
    while (spares->count > 0)
        remove_at(spares, spares->count - 1);
    free(spares->items);
    *spares = (struct spares){0};
}

static bool has(const struct spare *spare, const struct device_ref *device)
{
    for (size_t i = 0; i < spare->count; i++)
        if (device_ref_equal(&spare->devices[i], device))
            return true;
    return false;
}

/* The same for the same devices in any order. */
static uint64_t fingerprint(const struct device_ref *devices, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += hash_number(hash_number(HASH_START, devices[i].instance), devices[i].index);
    return sum;
}

/* Whether these are the spare's devices; mostly they come in its order. */
static bool is_for(const struct spare *spare, const struct device_ref *devices, size_t count)
{
    bool all = spare->count == count;
    for (size_t i = 0; i < count && all; i++)
        all = device_ref_equal(&spare->devices[i], &devices[i]) || has(spare, &devices[i]);
    return all;
}

static struct spare *find(const struct spares *spares, const struct device_ref *devices,
                          size_t count)
{
    uint64_t wanted = fingerprint(devices, count);
    for (size_t i = 0; i < spares->count; i++)
        if (spares->items[i].fingerprint == wanted && is_for(&spares->items[i], devices, count))
            return &spares->items[i];
    return NULL;
}

/* The devices that a job trains on, and free devices of that kind, each in the order of
 * membership. */
struct choice {
    struct device_view *own, *others;
    size_t own_count, other_count;
};

/* Pick what the job would be granted without this node: its other devices, and free ones. Returns
 * their number; 0: it has no other device, or there are too few. */
static size_t pick(const struct job *job, const char *lost, const struct choice *choice,
                   struct device_view *picked)
{
    size_t own = 0, sum;
    for (size_t i = 0; i < choice->own_count; i++)
        if (strcmp(choice->own[i].ref.worker, lost) != 0)
            picked[own++] = choice->own[i];
    sum = own;
    for (size_t i = 0; i < choice->other_count && own > 0 && sum < job->devices_max; i++)
        if (strcmp(choice->others[i].ref.worker, lost) != 0)
            picked[sum++] = choice->others[i];
    return own > 0 && sum >= job->devices_needed ? sum : 0;
}

/* Begin a search for the first of the job's nodes without which there is no plan yet. */
static void consider(struct service *service, const struct job *job, struct spares *spares,
                     const struct device_view *all, size_t count)
{
    struct device_view *picked = xcalloc(count, sizeof *picked);
    struct choice choice = {.own = xcalloc(count, sizeof *all),
                            .others = xcalloc(count, sizeof *all)};
    choice.own_count = service_own_devices(job, all, count, choice.own);
    if (choice.own_count > 0)
        choice.other_count =
            service_free_devices(all, count, choice.own[0].device->kind, choice.others);
    size_t trainers = job_trainers(job);
    for (size_t rank = 0; rank < trainers && !spares->asked; rank++) {
        size_t sum = pick(job, job->ranks[rank].device.worker, &choice, picked);
        struct device_ref *refs = service_refs(picked, sum);
        spares->asked = sum > 0 && !find(spares, refs, sum);
        if (spares->asked)
            service_plan_beside(service, ASKS_SPARE, job, picked, sum);
        free(refs);
    }
    free(choice.own);
    free(choice.others);
    free(picked);
}

void service_consider_spares(struct service *service)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    service_mark_slow(service, all, count);
    for (size_t i = 0; i < jobs_count(service->jobs); i++) {
        const struct job *job = jobs_at(service->jobs, i);
        struct spares *spares = &dossier_find(service, job->id)->spares;
        bool may = job->state == JOB_RUNNING && job->replans && !job->given[0] &&
                   job_trainers(job) <= NODES_MAX;
        if (may && spares->epoch == job->epoch && !spares->asked)
            consider(service, job, spares, all, count);
    }
    free(all);
}

void service_begin_spares(struct service *service, const struct job *job)
{
    struct spares *spares = &dossier_find(service, job->id)->spares;
    if (spares->epoch == job->epoch)
        return;
    spares_clear(spares);
    spares->epoch = job->epoch;
    service_consider_spares(service);
}

void service_forget_spares(struct service *service)
{
    service->hardware++;
    for (size_t i = 0; i < service->dossier_count; i++) {
        struct spares *spares = &service->dossiers[i]->spares;
        while (spares->count > 0)
            remove_at(spares, spares->count - 1);
    }
}

/* A failed search is kept as well, so that it is not repeated. */
void service_keep_spare(struct service *service, struct asker *asker,
                        struct planning_answer *answer)
{
    struct spares *spares = &dossier_find(service, asker->job)->spares;
    if (asker->hardware != service->hardware)
        return;
    struct spare *known = find(spares, asker->devices, asker->device_count);
    if (known)
        remove_at(spares, (size_t)(known - spares->items));
    spares->items = grow(spares->items, spares->count, &spares->capacity, sizeof *spares->items);
    spares->items[spares->count++] =
        (struct spare){asker->devices, asker->device_count,
                       fingerprint(asker->devices, asker->device_count), answer->planning};
    asker->devices = NULL;
    answer->planning = (struct planning){0};
}

bool service_take_spare(struct service *service, const struct job *job, struct planning *out)
{
    struct spares *spares = &dossier_find(service, job->id)->spares;
    size_t count = job_trainers(job);
    struct device_ref *refs = xcalloc(count, sizeof *refs);
    for (size_t i = 0; i < count; i++)
        refs[i] = job->ranks[i].device;
    struct spare *spare = find(spares, refs, count);
    bool found = spare && spare->planning.plan;
    free(refs);
    if (!found)
        return false;
    *out = spare->planning;
    spare->planning = (struct planning){0};
    remove_at(spares, (size_t)(spare - spares->items));
    return true;
}
