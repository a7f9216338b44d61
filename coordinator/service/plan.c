/* plan.c - which devices a search may use: those granted to a job, or all that are alive. */
#include "coordinator/service/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static unsigned devices_max(const struct job_config *config)
{
    return config->devices.max ? (unsigned)config->devices.max : UINT_MAX;
}

static bool same_device(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

/* Of all views, those of the job's devices, in the order of its ranks. */
static size_t pick_granted(const struct job *job, const struct device_view *all, size_t all_count,
                           struct device_view *picked)
{
    struct device_ref *refs = xcalloc(job->rank_count, sizeof *refs);
    size_t ref_count = job_devices(job, refs), count = 0;
    for (size_t i = 0; i < ref_count; i++)
        for (size_t j = 0; j < all_count; j++)
            if (same_device(&all[j].ref, &refs[i]))
                picked[count++] = all[j];
    free(refs);
    return count;
}

/* As the queue would on an idle cluster: GPUs where there are enough, else CPU devices. */
static size_t pick_alive(unsigned least, unsigned most, const struct device_view *all,
                         size_t all_count, struct device_view *picked)
{
    for (int kind = HARDWARE_GPU; kind >= HARDWARE_CPU; kind--) {
        size_t count = 0;
        for (size_t i = 0; i < all_count && count < most; i++)
            if (all[i].device->kind == (enum hardware_kind)kind && all[i].grantable)
                picked[count++] = all[i];
        if (count > 0 && count >= least)
            return count;
    }
    return 0;
}

int service_plan_job(struct service *service, const struct job *job, struct error *err)
{
    struct dossier *dossier = dossier_find(service, job->id);
    struct device_view *all, *granted;
    size_t all_count = membership_devices(service->membership, &all);
    granted = xcalloc(all_count, sizeof *granted);
    struct planning_request request = {
        .job = dossier->config,
        .graph = dossier->graph,
        .given = job->given[0] ? job->given : NULL,
        .devices = granted,
        .device_count = pick_granted(job, all, all_count, granted),
        .devices_max = job->devices_max,
        .clock_cb = service->options.clock_cb,
    };
    planning_finish(&dossier->planning);
    int rc = planning_run(&request, &dossier->planning, err);
    free(granted);
    free(all);
    return rc;
}

int service_plan_dry(struct service *service, const struct job_config *config,
                     const struct graph *graph, const char *given, enum planning_cost cost,
                     struct planning *out, struct error *err)
{
    struct device_view *all, *alive;
    size_t all_count = membership_devices(service->membership, &all);
    alive = xcalloc(all_count, sizeof *alive);
    struct planning_request request = {
        .job = config,
        .graph = graph,
        .given = given,
        .devices = alive,
        .device_count =
            pick_alive((unsigned)config->devices.min, devices_max(config), all, all_count, alive),
        .devices_max = devices_max(config),
        .cost = cost,
        .clock_cb = service->options.clock_cb,
    };
    *out = (struct planning){0};
    int rc = request.device_count > 0
                 ? planning_run(&request, out, err)
                 : error_set(err, -EBUSY,
                             "the job needs %lld devices of one kind, and the workers that are "
                             "alive have fewer",
                             (long long)config->devices.min);
    free(alive);
    free(all);
    return rc;
}
