/* pace.c - devices that compute slower than they should: their ranks are never ended for it, but it
 * is reported, and plans take them as they are.
 *
 * A device's speed is known for the life of its worker and not stored: it is measured again. When
 * it changes, a plan for the job's devices as they are is searched while it trains, and growth.c
 * decides whether it pays. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

static struct slow_device *find(const struct service *service, const struct device_ref *ref)
{
    for (size_t i = 0; i < service->slow_count; i++)
        if (device_ref_equal(&service->slow[i].device, ref))
            return &service->slow[i];
    return NULL;
}

double service_slowdown(const struct service *service, const struct device_ref *ref)
{
    const struct slow_device *slow = find(service, ref);
    return slow ? slow->factor : 1;
}

void service_mark_slow(const struct service *service, struct device_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        views[i].slowdown = service_slowdown(service, &views[i].ref);
    service_mark_network(service, views, count);
}

static void set(struct service *service, const struct device_ref *ref, double factor)
{
    struct slow_device *slow = find(service, ref);
    if (!slow) {
        service->slow = grow(service->slow, service->slow_count, &service->slow_capacity,
                             sizeof *service->slow);
        slow = &service->slow[service->slow_count++];
    }
    *slow = (struct slow_device){*ref, factor};
    if (factor <= 1)
        *slow = service->slow[--service->slow_count];
}

void service_forget_slow(struct service *service, uint64_t instance)
{
    for (size_t i = service->slow_count; i-- > 0;)
        if (service->slow[i].device.instance == instance)
            service->slow[i] = service->slow[--service->slow_count];
}

/* A device that was slow in the last epoch counts as slow in this one until a measurement says
 * otherwise. */
static void take_over(struct service *service, const struct job *job, struct pace *pace)
{
    if (pace->epoch == job->epoch && pace->count == job_trainers(job))
        return;
    for (size_t i = 0; i < job_trainers(job); i++)
        if (find(service, &job->ranks[i].device))
            pace_begin(pace, job->epoch, job_trainers(job), i);
}

static void tell(struct service *service, const struct job *job, size_t rank, bool slow,
                 double factor)
{
    const struct device_ref *device = &job->ranks[rank].device;
    json_t *json = json_pack("{s:I, s:I, s:f}", "rank", (json_int_t)rank, "device",
                             (json_int_t)device->index, "factor", factor);
    service_tell(service, slow ? "node-slow" : "node-recovered-speed", job->id, device->worker,
                 json,
                 slow ? "%s: rank %zu on %s/%u takes %.1f times as long to compute as its "
                        "profile predicts, relative to the other ranks"
                      : "%s: rank %zu on %s/%u computes as fast as the other ranks again (%.1f)",
                 job->id, rank, device->worker, device->index, factor);
}

void service_hear_pace(struct service *service, const struct job *job, size_t rank,
                       double measured_s, double predicted_s)
{
    struct dossier *dossier = dossier_find(service, job->id);
    const struct device_ref *device = &job->ranks[rank].device;
    struct pace_found found;
    if (job->state != JOB_RUNNING || rank >= job_trainers(job))
        return;
    take_over(service, job, &dossier->pace);
    enum pace_news news = pace_hear(&dossier->pace, job->epoch, job_trainers(job), rank, measured_s,
                                    predicted_s, service_now_ms(service), &found);
    if (news == PACE_NOTHING)
        return;
    bool slow = news == PACE_HAS_SLOWED, known = service_slowdown(service, device) > 1;
    tell(service, job, rank, slow, found.factor);
    set(service, device, slow ? round(found.factor * 10) / 10 : 1);
    service_forget_spares(service);
    if (job->replans && !job->given[0] && (slow ? found.drifted : known))
        service_plan_again(service, job);
}
