/* given.c - judges a plan that was supplied instead of searched for. */
#include "coordinator/planner/shared_cores.h"

#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_device(const struct planner_request *request, const char *name)
{
    int i = 0;
    while (i < request->device_count && strcmp(request->devices[i].name, name) != 0)
        i++;
    return i;
}

/* Fill `devices`, one for each rank. */
static int find_devices(const struct planner_request *request, const struct plan *plan,
                        struct planner_device *devices, struct error *err)
{
    int ranks = plan_ranks(plan);
    if (ranks > request->device_count)
        return error_set(err, -ESTALE, "the given plan is for %d devices, there are %d", ranks,
                         request->device_count);
    for (int rank = 0; rank < ranks; rank++) {
        const char *name = plan_device(plan, rank);
        int index = name ? find_device(request, name) : rank;
        if (index == request->device_count)
            return error_set(err, -ESTALE,
                             "rank %d of the given plan is on %s, which is not among the devices "
                             "of the job: make a new plan, or take the devices out of this one",
                             rank, name);
        devices[rank] = request->devices[index];
    }
    return 0;
}

int planner_order(const struct planner_request *request, const struct plan *plan,
                  struct shared_cores *out, struct error *err)
{
    *out = (struct shared_cores){0};
    struct planner_device *devices = xcalloc((size_t)request->device_count, sizeof *devices);
    int rc = find_devices(request, plan, devices, err);
    if (rc == 0)
        shared_cores_init(out, devices, plan_ranks(plan));
    free(devices);
    return rc;
}

/* Makes the only candidate the answer, if it fits. */
static int take(const struct planner_request *request, struct planner_result *out,
                struct error *err)
{
    char tight[PLANNER_TIGHT_SIZE];
    assert(out->count == 1);
    struct plan *plan = out->candidates[0].plan;
    snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", "given");
    plan->predicted.candidates = 1;
    if (!out->candidates[0].fits)
        return error_set(err, -ENOSPC, "the given plan does not fit: it needs %s",
                         planner_print_tight(request, &out->candidates[0], tight, sizeof tight));
    out->best = plan;
    out->safety = safety_of(request, plan);
    plan->predicted.copies_time_s = safety_seconds(&out->safety);
    return 0;
}

int planner_given(const struct planner_request *request, struct plan *plan,
                  struct planner_result *out, struct error *err)
{
    *out = (struct planner_result){0};
    struct shared_cores used = {0};
    struct planner_request ask = *request;
    int rc = plan_check(plan, request->graph, err);
    if (rc == 0)
        rc = planner_order(request, plan, &used, err);
    ask.devices = used.devices;
    ask.device_count = used.count;
    if (rc == 0)
        rc = planner_consider(&ask, plan, out, err);
    else
        plan_destroy(plan);
    if (rc == 0)
        rc = take(&ask, out, err);
    else
        error_prefix(err, rc, "plan");
    shared_cores_finish(&used);
    return rc;
}
