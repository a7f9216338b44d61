/* fleet.c - turns views into devices with a name and a profile. */
#include "coordinator/planning/fleet.h"

#include "common/base/memory.h"
#include "common/profile/alike.h"
#include "coordinator/planning/device_profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ratio of the time per flop between adjacent speed classes. */
#define PACE_STEP 1.5

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

static int find_profile(const struct device_view *view, enum planning_cost cost,
                        struct profile *out, struct error *err)
{
    const struct hardware_device *device = view->device;
    char name[HARDWARE_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%s/%u", view->ref.worker, view->ref.index);
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
        free((char *)fleet->devices[i].cores);
    }
    free(fleet->devices);
    free(fleet->refs);
    free(fleet->slowdowns);
    free(fleet->profiles);
    *fleet = (struct fleet){0};
}

/* Equally fast devices share one profile: the planner recognizes like devices by its address. */
static const struct profile *share_profile(struct fleet *fleet, const struct profile *profile)
{
    for (size_t i = 0; i < fleet->profile_count; i++)
        if (profile_equal(&fleet->profiles[i], profile))
            return &fleet->profiles[i];
    fleet->profiles[fleet->profile_count] = *profile;
    return &fleet->profiles[fleet->profile_count++];
}

/* Ranks on cores meet at one address of their host, so they share the card that has it. */
void fleet_set_network(struct profile *profile, enum hardware_kind kind,
                       const struct profile_link *link, unsigned cards)
{
    profile->network = *link;
    profile->network_cards = kind == HARDWARE_CPU ? 1 : cards;
}

/* The profiles of all views as they were measured, or told, those of like devices as one. The
 * caller frees *out in any case. */
static int find_profiles(const struct device_view *views, size_t count, enum planning_cost cost,
                         struct profile **out, struct error *err)
{
    const char **names = xcalloc(count, sizeof *names);
    int rc = 0;
    *out = xcalloc(count, sizeof **out);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct hardware_device *device = views[i].device;
        if (device->profile && cost != PLANNING_ANALYTIC)
            names[i] = device->name ? device->name : "";
        rc = find_profile(&views[i], cost, &(*out)[i], err);
    }
    if (rc == 0)
        profiles_level(*out, names, count);
    free(names);
    return rc;
}

static void fleet_add(struct fleet *fleet, const struct device_view *view, struct profile profile)
{
    size_t index = fleet->count++;
    struct planner_device *device = &fleet->devices[index];
    fleet->refs[index] = view->ref;
    device->name = xasprintf("%s/%u", view->ref.worker, view->ref.index);
    device->host = xstrdup(view->host);
    device->ran_out = view->memory_max > 0 && view->memory_max < view->device->memory_bytes;
    device->memory_bytes = device->ran_out ? view->memory_max : view->device->memory_bytes;
    device->library_bytes = view->device->library_bytes;
    device->own_memory = view->device->kind == HARDWARE_GPU;
    device->host_bytes = device->own_memory ? view->host_bytes : device->memory_bytes;
    fleet->slowdowns[index] = view->slowdown > 0 ? view->slowdown : 1;
    if (view->crowded && view->device->kind == HARDWARE_CPU && view->device->cpuset)
        device->cores = xstrdup(view->device->cpuset);
    profile_slow_down(&profile, fleet->slowdowns[index]);
    if (view->network.seconds_per_byte > 0)
        fleet_set_network(&profile, view->device->kind, &view->network, view->network_cards);
    device->host_network = view->host_network;
    device->profile = share_profile(fleet, &profile);
}

/* How many ranks of other jobs compute on the view's cores. Of a free one, those that have another
 * device of the fleet are of the job itself. A measured slowdown includes them. */
static double count_others(const struct device_view *views, size_t count, size_t at)
{
    double others = views[at].busy;
    if (views[at].slowdown > 1 || !(others > 0))
        return 0;
    for (size_t i = 0; i < count && !views[at].holder[0]; i++)
        if (i != at && views[i].holder[0] && strcmp(views[i].host, views[at].host) == 0)
            others -= hardware_overlap(views[at].device->cpuset, views[i].device->cpuset);
    return others > 0 ? others : 0;
}

/* Seconds per flop of a host, as the mean over its devices, which are adjacent. */
static double host_pace(const struct fleet *fleet, size_t first)
{
    double sum = 0;
    size_t i = first;
    for (; i < fleet->count && strcmp(fleet->devices[i].host, fleet->devices[first].host) == 0; i++)
        sum += fleet->devices[i].profile->seconds_per_flop;
    return sum / (double)(i - first);
}

/* The speed class of each device's host, fastest first, rounded so that hosts of about the same
 * speed share a class whatever their probes measured exactly. */
static int *host_classes(const struct fleet *fleet, int *most)
{
    int *classes = xcalloc(fleet->count, sizeof *classes);
    double *paces = xcalloc(fleet->count, sizeof *paces), least = INFINITY;
    for (size_t i = 0; i < fleet->count; i++) {
        bool same = i > 0 && strcmp(fleet->devices[i].host, fleet->devices[i - 1].host) == 0;
        paces[i] = same ? paces[i - 1] : host_pace(fleet, i);
        least = fmin(least, paces[i]);
    }
    *most = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        classes[i] = least > 0 ? (int)lround(log(paces[i] / least) / log(PACE_STEP)) : 0;
        *most = classes[i] > *most ? classes[i] : *most;
    }
    free(paces);
    return classes;
}

/* A plan on fewer devices uses the first of them, and its stages follow their order, so fast hosts
 * come first; otherwise the order is unchanged. */
static void put_fast_hosts_first(struct fleet *fleet)
{
    int most;
    int *classes = host_classes(fleet, &most);
    struct fleet sorted = {
        .devices = xcalloc(fleet->count, sizeof *sorted.devices),
        .refs = xcalloc(fleet->count, sizeof *sorted.refs),
        .slowdowns = xcalloc(fleet->count, sizeof *sorted.slowdowns),
    };
    for (int class = 0; class <= most; class ++)
        for (size_t i = 0; i < fleet->count; i++) {
            if (classes[i] != class)
                continue;
            sorted.devices[sorted.count] = fleet->devices[i];
            sorted.refs[sorted.count] = fleet->refs[i];
            sorted.slowdowns[sorted.count++] = fleet->slowdowns[i];
        }
    free(classes);
    free(fleet->devices);
    free(fleet->refs);
    free(fleet->slowdowns);
    fleet->devices = sorted.devices;
    fleet->refs = sorted.refs;
    fleet->slowdowns = sorted.slowdowns;
}

/* Hosts stay in the order of their first devices, except for their speed. */
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
    struct profile *profiles;
    int rc = find_profiles(views, count, cost, &profiles, err);
    for (size_t first = 0; first < count && rc == 0; first++) {
        if (taken[first])
            continue;
        for (size_t i = first; i < count; i++) {
            if (strcmp(views[i].host, views[first].host) != 0)
                continue;
            taken[i] = true;
            fleet_add(fleet, &views[i], profiles[i]);
            fleet->devices[fleet->count - 1].others = count_others(views, count, i);
        }
    }
    free(taken);
    free(profiles);
    if (rc == 0)
        put_fast_hosts_first(fleet);
    return rc;
}

size_t fleet_find(const struct fleet *fleet, const char *name)
{
    size_t i = 0;
    while (i < fleet->count && strcmp(fleet->devices[i].name, name) != 0)
        i++;
    return i;
}
