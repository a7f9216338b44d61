/* memory.c - remembers devices that had less memory for a rank than was planned, and how much of
 * them may be planned for their job from then on.
 *
 * A device may have less memory than its worker says: others use it too, or a limit is not visible.
 * How much less is not known, only that the plan's figure was too much. So the next plan has to do
 * with a tenth less than that, and so on until one works. This is known for the life of the worker
 * and of the job and not stored: a restarted coordinator finds it out again. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#define LESS 0.9 /* the share of what was too much that may be planned next */

static struct scarce_device *find(const struct dossier *dossier, const struct device_ref *device)
{
    for (size_t i = 0; i < dossier->scarce_count; i++)
        if (device_ref_equal(&dossier->scarce[i].device, device))
            return &dossier->scarce[i];
    return NULL;
}

/* Bytes that the plan needs on the rank, by the planner's rule: those of its stage's largest
 * rank. */
static uint64_t planned_bytes(const struct plan *plan, int rank)
{
    int inside;
    return plan->stages[plan_rank_stage(plan, rank, &inside)].memory_bytes;
}

static struct scarce_device *add(struct dossier *dossier, const struct device_ref *device)
{
    dossier->scarce = grow(dossier->scarce, dossier->scarce_count, &dossier->scarce_capacity,
                           sizeof *dossier->scarce);
    struct scarce_device *scarce = &dossier->scarce[dossier->scarce_count++];
    *scarce = (struct scarce_device){*device, UINT64_MAX};
    return scarce;
}

/* The device as its worker reports it; NULL: it is not there. */
static const struct hardware_device *told(const struct service *service,
                                          const struct device_ref *device)
{
    const struct worker *worker = membership_find(service->membership, device->worker);
    bool known = worker && device->index < worker->report->device_count;
    return known ? &worker->report->devices[device->index] : NULL;
}

bool service_has_host_memory(const struct service *service, const struct job *job, size_t rank)
{
    const struct hardware_device *device = told(service, &job->ranks[rank].device);
    return device && device->kind == HARDWARE_CPU;
}

/* The plan's figure may be more than this device has, because its stage's largest rank may be on a
 * larger device. */
uint64_t service_lower_memory(struct service *service, const struct job *job, size_t rank)
{
    struct dossier *dossier = dossier_find(service, job->id);
    const struct plan *plan = dossier->planning.plan;
    if (!plan || rank >= (size_t)plan_ranks(plan))
        return 0;
    const struct device_ref *device = &job->ranks[rank].device;
    const struct hardware_device *known = told(service, device);
    uint64_t most = planned_bytes(plan, (int)rank), has = known ? known->memory_bytes : UINT64_MAX;
    struct scarce_device *scarce = find(dossier, device);
    if (!scarce)
        scarce = add(dossier, device);
    most = has < most ? has : most;
    most = scarce->memory_max < most ? scarce->memory_max : most;
    scarce->memory_max = (uint64_t)(LESS * (double)most);
    spares_clear(&dossier->spares); /* they may need as much */
    return scarce->memory_max;
}

bool service_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                           const struct device_ref *device)
{
    const struct scarce_device *scarce = find(dossier, device);
    return !scarce || planned_bytes(plan, rank) <= scarce->memory_max;
}

void service_mark_scarce(const struct dossier *dossier, struct device_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct scarce_device *scarce = find(dossier, &views[i].ref);
        views[i].memory_max = scarce ? scarce->memory_max : 0;
    }
}
