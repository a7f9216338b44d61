/* planning.c - devices as the planner wants them, and the plan as the workers want it. */
#include "coordinator/planning/planning.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/assignments/assignments.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device known by its peak rates alone: kernels reach half of them, and links are those of
 * a process beside another and of 10 Gbit/s Ethernet. */
#define SHARE_OF_PEAK 0.5
static const struct profile_link link_host = {20e-6, 1 / 5e9}, link_network = {60e-6, 1 / 1.1e9};

/* How many times the devices there are is tried, to say how many would do. */
#define MORE_FACTOR_MAX 4
#define ROWS_MAX 200

/* The devices in the planner's order: those of one host next to each other. */
struct fleet {
    const struct device_view **views;
    struct planner_device *devices;
    struct profile *profiles;
    char (*names)[HARDWARE_NAME_SIZE + 16];
    size_t count;
};

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
    return error_set(err, -EINVAL, "cost '%.64s' is unknown; known: best, measured, analytic",
                     text);
}

static int find_profile(const struct device_view *view, const char *name, enum planning_cost cost,
                        struct profile *out, struct error *err)
{
    const struct hardware_device *device = view->device;
    if (device->profile && cost != PLANNING_ANALYTIC) {
        int rc = profile_decode(device->profile, out, err);
        return rc < 0 ? error_prefix(err, rc, "%s", name) : 0;
    }
    if (cost == PLANNING_MEASURED)
        return error_set(err, -EINVAL, "%s has no measured profile yet", name);
    if (!(device->flops > 0) || !(device->bandwidth > 0))
        return error_set(err, -EINVAL,
                         "%s has neither a measured profile nor peak rates: its worker must probe "
                         "it, or be told its flops and bandwidth",
                         name);
    *out =
        profile_analytic(device->flops, device->bandwidth, SHARE_OF_PEAK, link_host, link_network);
    return 0;
}

static void fleet_finish(struct fleet *fleet)
{
    free(fleet->views);
    free(fleet->devices);
    free(fleet->profiles);
    free(fleet->names);
}

/* Room for count devices. */
static void fleet_init(struct fleet *fleet, size_t count)
{
    *fleet = (struct fleet){
        .views = xcalloc(count, sizeof(struct device_view *)),
        .devices = xcalloc(count, sizeof *fleet->devices),
        .profiles = xcalloc(count, sizeof *fleet->profiles),
        .names = xcalloc(count, sizeof *fleet->names),
    };
}

static int fleet_add(struct fleet *fleet, const struct device_view *view, enum planning_cost cost,
                     struct error *err)
{
    size_t index = fleet->count++;
    snprintf(fleet->names[index], sizeof fleet->names[index], "%s/%u", view->ref.worker,
             view->ref.index);
    fleet->views[index] = view;
    fleet->devices[index] = (struct planner_device){
        .name = fleet->names[index],
        .host = view->host,
        .memory_bytes = view->device->memory_bytes,
        .profile = &fleet->profiles[index],
    };
    return find_profile(view, fleet->names[index], cost, &fleet->profiles[index], err);
}

/* Hosts in the order of their first devices. */
static int fleet_fill(struct fleet *fleet, const struct planning_request *request,
                      struct error *err)
{
    size_t count = request->device_count;
    bool *taken = xcalloc(count, sizeof *taken);
    int rc = 0;
    for (size_t first = 0; first < count && rc == 0; first++) {
        if (taken[first])
            continue;
        for (size_t i = first; i < count && rc == 0; i++) {
            if (strcmp(request->devices[i].host, request->devices[first].host) != 0)
                continue;
            taken[i] = true;
            rc = fleet_add(fleet, &request->devices[i], request->cost, err);
        }
    }
    free(taken);
    return rc;
}

static size_t fleet_find(const struct fleet *fleet, const char *name)
{
    size_t i = 0;
    while (i < fleet->count && strcmp(fleet->names[i], name) != 0)
        i++;
    return i;
}

/* The planner numbers ranks by the order of devices: bring them into the plan's. */
static int order_devices(const struct plan *plan, const struct fleet *fleet,
                         struct planner_device *devices, struct error *err)
{
    int ranks = plan_ranks(plan);
    if ((size_t)ranks > fleet->count)
        return error_set(err, -EINVAL, "the given plan is for %d devices, there are %zu", ranks,
                         fleet->count);
    for (int rank = 0; rank < ranks; rank++) {
        const char *name = plan_device(plan, rank);
        size_t index = name ? fleet_find(fleet, name) : (size_t)rank;
        if (index == fleet->count)
            return error_set(err, -EINVAL,
                             "rank %d of the given plan is on %s, which is not among the devices "
                             "of the job: make a new plan, or take the devices out of this one",
                             rank, name);
        devices[rank] = fleet->devices[index];
    }
    return 0;
}

/* Takes the plan. */
static int price_given(const struct planning_request *request, const struct fleet *fleet,
                       struct plan *plan, struct planner_result *result, struct error *err)
{
    struct planner_device *devices = xcalloc(fleet->count, sizeof *devices);
    struct planner_request ask = {request->graph, request->job, devices, plan_ranks(plan)};
    int rc = plan_check(plan, request->graph, err);
    if (rc == 0)
        rc = order_devices(plan, fleet, devices, err);
    if (rc == 0)
        rc = planner_consider(&ask, plan, result, err);
    else
        plan_destroy(plan);
    free(devices);
    if (rc < 0)
        return error_prefix(err, rc, "plan");
    assert(result->count == 1);
    plan = result->candidates[0].plan;
    snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", "given");
    plan->predicted.candidates = 1;
    if (!result->candidates[0].fits) {
        char need[32];
        return error_set(
            err, -ENOSPC, "the given plan does not fit: it needs %s on one device",
            units_print_bytes(need, sizeof need, (double)plan->predicted.memory_bytes_max));
    }
    result->best = plan;
    return 0;
}

static int search_plan(const struct planning_request *request, const struct fleet *fleet,
                       struct planner_result *result, struct error *err)
{
    if (request->given) {
        struct plan *plan;
        int rc = plan_decode(request->given, &plan, err);
        return rc < 0 ? rc : price_given(request, fleet, plan, result, err);
    }
    struct planner_request ask = {request->graph, request->job, fleet->devices, (int)fleet->count};
    return planner_run(&ask, result, err);
}

/* Would so many devices do, of which more than half are used? */
static bool would_fit(const struct planning_request *request, const struct planner_device *devices,
                      size_t count)
{
    struct job_config job = *request->job;
    struct planner_request ask = {request->graph, &job, devices, (int)count};
    struct planner_result result;
    job.devices.min = (int64_t)count / 2 + 1; /* some of these numbers can be divided */
    job.devices.max = (int64_t)count;
    bool fits = planner_run(&ask, &result, NULL) == 0;
    planner_result_finish(&result);
    return fits;
}

/* How many devices would do, if there were more like the last: 0 when not even the most that is
 * tried would. Where some would, more would, too. */
static unsigned count_needed(const struct planning_request *request, const struct fleet *fleet)
{
    size_t most = fleet->count * MORE_FACTOR_MAX;
    most = request->devices_max < most ? request->devices_max : most;
    if (request->given || most <= fleet->count)
        return 0;
    struct planner_device *devices = xcalloc(most, sizeof *devices);
    for (size_t i = 0; i < most; i++)
        devices[i] = fleet->devices[i < fleet->count ? i : fleet->count - 1];
    size_t low = fleet->count, needed = would_fit(request, devices, most) ? most : 0;
    while (needed > low + 1) {
        size_t middle = (low + needed) / 2;
        if (would_fit(request, devices, middle))
            needed = middle;
        else
            low = middle;
    }
    free(devices);
    return (unsigned)needed;
}

static char *print_candidates(const struct planner_result *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    planner_print(result, ROWS_MAX, out);
    fclose(out);
    return text;
}

/* The workers' devices, by the names that the planner gave the ranks. */
static void name_ranks(struct planning *planning, const struct fleet *fleet)
{
    planning->rank_count = (size_t)plan_ranks(planning->plan);
    planning->devices = xcalloc(planning->rank_count, sizeof *planning->devices);
    for (size_t rank = 0; rank < planning->rank_count; rank++) {
        size_t index = fleet_find(fleet, plan_device(planning->plan, (int)rank));
        planning->devices[rank] = fleet->views[index]->ref;
    }
}

int planning_run(const struct planning_request *request, struct planning *out, struct error *err)
{
    struct fleet fleet;
    struct planner_result result = {0};
    uint64_t began_ms = request->clock_cb();
    *out = (struct planning){0};
    fleet_init(&fleet, request->device_count);
    int rc = fleet_fill(&fleet, request, err);
    if (rc == 0)
        rc = search_plan(request, &fleet, &result, err);
    if (result.count > 0)
        out->candidates = print_candidates(&result);
    if (rc == 0) {
        result.best->predicted.wall_s = (double)(request->clock_cb() - began_ms) / 1000;
        rc = assignments_hash(request->graph, result.best, &out->hashes, err);
    } else if (rc == -ENOSPC) {
        out->devices_needed = count_needed(request, &fleet);
    }
    if (rc == 0) {
        out->plan = plan_copy(result.best);
        out->json = plan_encode(out->plan, request->graph);
        name_ranks(out, &fleet);
    }
    planner_result_finish(&result);
    fleet_finish(&fleet);
    return rc;
}

void planning_finish(struct planning *planning)
{
    plan_destroy(planning->plan);
    free(planning->json);
    free(planning->candidates);
    free(planning->hashes);
    free(planning->devices);
    *planning = (struct planning){0};
}
