/* fleet.c - from views to devices with a name and a profile. */
#include "coordinator/planning/fleet.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/device_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err)
{
    static const char *const words[] = {[PLANNING_BEST] = "best",
                                        [PLANNING_MEASURED] = "measured",
                                        [PLANNING_ANALYTIC] = "analytic"};
    *cost = PLANNING_BEST;
    for (size_t i = 0; text[0] && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], text) == 0) {
            *cost = (enum planning_cost)i;
            return 0;
        }
    if (!text[0])
        return 0;
    return error_set(
        err, -EINVAL,
        "cost '%.64s' is unknown; known: best, measured, analytic; of 'gimbal plan' with a "
        "cluster file also galvatron",
        text);
}

size_t fleet_pick(const struct device_view *views, size_t count, unsigned least, unsigned most,
                  struct device_view *picked)
{
    for (int kind = HARDWARE_GPU; kind >= HARDWARE_CPU; kind--) {
        size_t taken = 0;
        for (size_t i = 0; i < count && taken < most; i++)
            if (views[i].device->kind == (enum hardware_kind)kind && views[i].grantable)
                picked[taken++] = views[i];
        if (taken > 0 && taken >= least)
            return taken;
    }
    return 0;
}

static int find_profile(const struct device_view *view, const char *name, enum planning_cost cost,
                        struct profile *out, struct error *err)
{
    const struct hardware_device *device = view->device;
    bool measured = cost != PLANNING_ANALYTIC;
    if (!(device->profile && measured) && view->told && cost != PLANNING_MEASURED) {
        *out = *view->told;
        return 0;
    }
    if (cost == PLANNING_MEASURED && !device->profile)
        return error_set(err, -EINVAL, "%s has no measured profile yet", name);
    return device_profile(device, name, measured, out, err);
}

void fleet_finish(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        free((char *)fleet->devices[i].name);
        free((char *)fleet->devices[i].host);
    }
    free(fleet->devices);
    free(fleet->refs);
    free(fleet->slowdowns);
    free(fleet->profiles);
    *fleet = (struct fleet){0};
}

/* One object for all devices that are equally fast: that is how the planner knows them for alike.
 */
static const struct profile *share_profile(struct fleet *fleet, const struct profile *profile)
{
    for (size_t i = 0; i < fleet->profile_count; i++)
        if (profile_equal(&fleet->profiles[i], profile))
            return &fleet->profiles[i];
    fleet->profiles[fleet->profile_count] = *profile;
    return &fleet->profiles[fleet->profile_count++];
}

static int fleet_add(struct fleet *fleet, const struct device_view *view, enum planning_cost cost,
                     struct error *err)
{
    size_t index = fleet->count++;
    struct planner_device *device = &fleet->devices[index];
    struct profile profile = {0};
    fleet->refs[index] = view->ref;
    device->name = xasprintf("%s/%u", view->ref.worker, view->ref.index);
    device->host = xstrdup(view->host);
    device->ran_out = view->memory_max > 0 && view->memory_max < view->device->memory_bytes;
    device->memory_bytes = device->ran_out ? view->memory_max : view->device->memory_bytes;
    device->library_bytes = view->device->library_bytes;
    fleet->slowdowns[index] = view->slowdown > 0 ? view->slowdown : 1;
    int rc = find_profile(view, device->name, cost, &profile, err);
    profile_slow_down(&profile, fleet->slowdowns[index]);
    device->profile = share_profile(fleet, &profile);
    return rc;
}

/* Hosts in the order of their first devices. */
int fleet_open(struct fleet *fleet, const struct device_view *views, size_t count,
               enum planning_cost cost, struct error *err)
{
    *fleet = (struct fleet){
        .devices = xcalloc(count, sizeof *fleet->devices),
        .refs = xcalloc(count, sizeof *fleet->refs),
        .slowdowns = xcalloc(count, sizeof *fleet->slowdowns),
        .profiles = xcalloc(count, sizeof *fleet->profiles),
    };
    bool *taken = xcalloc(count, sizeof *taken);
    int rc = 0;
    for (size_t first = 0; first < count && rc == 0; first++) {
        if (taken[first])
            continue;
        for (size_t i = first; i < count && rc == 0; i++) {
            if (strcmp(views[i].host, views[first].host) != 0)
                continue;
            taken[i] = true;
            rc = fleet_add(fleet, &views[i], cost, err);
        }
    }
    free(taken);
    return rc;
}

size_t fleet_find(const struct fleet *fleet, const char *name)
{
    size_t i = 0;
    while (i < fleet->count && strcmp(fleet->devices[i].name, name) != 0)
        i++;
    return i;
}
