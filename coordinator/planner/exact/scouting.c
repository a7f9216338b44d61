/* scouting.c - decides which points are scouted, and in which order. */
#include "coordinator/planner/exact/scouting.h"

#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/request.h"
#include "coordinator/planner/exact/listing.h"
#include "coordinator/planner/exact/opening.h"
#include "coordinator/planner/exact/scout.h"

#include <math.h>
#include <stdlib.h>

/* points whose smallest plan is looked for if nothing fits */
#define SMALLEST_MAX 16
/* Scouts accept plans this much slower than the best, since exact search may improve them. */
#define SCOUTED 1.25

int scouting_host(const struct planner_request *request)
{
    int most = 1;
    for (int i = 1, count = 1; i < request->device_count; i++) {
        count = hosts_same(&request->devices[i], &request->devices[i - 1]) ? count + 1 : 1;
        most = count > most ? count : most;
    }
    return most;
}

/* Whole hosts before parts of them, more devices before fewer. Parts of small stages are cheaper to
 * lower, so beyond one host points with more stages come first. Then by bounds. */
static int by_devices(const void *first, const void *second, void *context)
{
    const struct hunt_point *a = first, *b = second;
    int host = *(const int *)context;
    int whole = (a->point.devices % host != 0) - (b->point.devices % host != 0);
    if (whole != 0)
        return whole;
    if (a->point.devices != b->point.devices)
        return b->point.devices - a->point.devices;
    if (a->point.devices > host && a->point.stages != b->point.stages)
        return b->point.stages - a->point.stages;
    return listing_by_bound(first, second);
}

/* If devices differ, points with one device per stage come first: a block has only one strategy
 * there, and stages adapt to the speed of their devices. */
static int by_sharing(const void *first, const void *second)
{
    const struct hunt_point *a = first, *b = second;
    int shared = (a->point.devices > a->point.stages) - (b->point.devices > b->point.stages);
    return shared != 0 ? shared : listing_by_bound(first, second);
}

static void scout_one(struct hunt *hunt, struct hunt_point *point)
{
    double formula_s;
    struct plan *plan = scout_point(&hunt->costs, &point->point, hunt->best_s * SCOUTED, &formula_s,
                                    &point->hope_s);
    if (!plan)
        return;
    hunt->opened++;
    if (formula_s < hunt->best_s) {
        hunt_add(hunt, plan, formula_s);
    } else {
        plan_destroy(plan);
    }
}

void scouting_run(struct hunt *hunt)
{
    size_t lowered = hunt->costs.lowered;
    int host = scouting_host(hunt->request);
    if (hunt->basis.unlike)
        qsort(hunt->points, hunt->point_count, sizeof *hunt->points, by_sharing);
    else
        qsort_r(hunt->points, hunt->point_count, sizeof *hunt->points, by_devices, &host);
    for (size_t i = 0; i < hunt->point_count; i++) {
        struct hunt_point *point = &hunt->points[i];
        if (hunt_is_enough(hunt) || hunt->costs.lowered - lowered > hunt->limits.scouts)
            return;
        if (point->point.extra == EXTRA_NONE && !opening_is_hopeless(hunt, point))
            scout_one(hunt, point);
    }
}

/* With more devices, then micro-batches, then stages, plans are smaller. */
static int smaller_first(const void *first, const void *second)
{
    const struct hunt_point *a = first, *b = second;
    int devices = b->point.devices - a->point.devices, stages = b->point.stages - a->point.stages,
        micro_batches = b->point.micro_batches - a->point.micro_batches;
    return devices         ? devices
           : micro_batches ? micro_batches
           : stages        ? stages
                           : (a->index > b->index) - (a->index < b->index);
}

void scouting_smallest(struct hunt *hunt)
{
    double least = INFINITY, share, step_s, bound_s;
    size_t looked_at = 0;
    bool fits = false;
    qsort(hunt->points, hunt->point_count, sizeof *hunt->points, smaller_first);
    for (size_t i = 0; i < hunt->point_count; i++) {
        const struct space_point *point = &hunt->points[i].point;
        bool enough = hunt->smallest && looked_at >= SMALLEST_MAX;
        if (point->extra != EXTRA_NONE || enough || planner_stopped(hunt->request))
            continue;
        looked_at++;
        struct plan *plan = scout_smallest(&hunt->costs, point, &share);
        if (plan && share < least) {
            struct plan *larger = hunt->smallest;
            hunt->smallest = plan;
            plan = larger;
            least = share;
        }
        plan_destroy(plan);
    }
    if (hunt->smallest &&
        evaluate_plan(&hunt->costs, hunt->smallest, &step_s, &bound_s, &fits, NULL) == 0 && fits) {
        hunt_add(hunt, plan_copy(hunt->smallest), step_s);
    }
}
