/* listing.c - lists the points of a hunt with lower bounds, before any of them is searched.
 *
 * For many devices there are too many points to bound each: only even ones are listed at first, and
 * the others once a plan is known that most of them cannot beat. */
#include "coordinator/planner/exact/listing.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/scouting.h"

#include <math.h>
#include <stdlib.h>

int listing_by_bound(const void *first, const void *second)
{
    const struct hunt_point *a = first, *b = second;
    if (a->bound.formula_s != b->bound.formula_s)
        return a->bound.formula_s < b->bound.formula_s ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* By the scouts' estimates, then by bounds. */
static int by_hope(const void *first, const void *second)
{
    const struct hunt_point *a = first, *b = second;
    if (a->hope_s != b->hope_s)
        return a->hope_s < b->hope_s ? -1 : 1;
    return listing_by_bound(first, second);
}

void listing_points(struct hunt *hunt, int least, int most)
{
    const struct planner_request *request = hunt->request;
    struct space_point *points = NULL;
    hunt->step = 0;
    hunt->least = least;
    hunt->point_count = 0;
    if (space_points_most(request, least, most) > hunt->limits.points) {
        hunt->step = scouting_host(request);
        points = space_points_even(request, least, most, hunt->step, &hunt->point_count);
    }
    if (hunt->point_count == 0) {
        free(points);
        hunt->step = 0;
        points = space_points(request, least, most, &hunt->point_count);
    }
    hunt->points = xcalloc(hunt->point_count, sizeof *hunt->points);
    hunt->point_capacity = hunt->point_count;
    for (size_t i = 0; i < hunt->point_count; i++)
        hunt->points[i] = (struct hunt_point){.point = points[i],
                                              .bound = bounds_point(&hunt->bounds, &points[i]),
                                              .hope_s = INFINITY,
                                              .too_small = !bounds_fit(&hunt->bounds, &points[i]),
                                              .index = i};
    free(points);
    if (hunt->point_count > 1)
        qsort(hunt->points, hunt->point_count, sizeof *hunt->points, listing_by_bound);
}

void listing_sort(struct hunt *hunt)
{
    if (hunt->point_count > 1)
        qsort(hunt->points, hunt->point_count, sizeof *hunt->points, by_hope);
}

/* List the point if it may beat what was found; otherwise account for its bound by simulation. */
static void judge_unlisted(struct hunt *hunt, const struct space_point *point)
{
    struct hunt_point added = {.point = *point,
                               .bound = bounds_point(&hunt->bounds, point),
                               .hope_s = INFINITY,
                               .index = hunt->point_count};
    if (added.bound.formula_s >= hunt->best_s) {
        hunt->unlisted_s = fmin(hunt->unlisted_s, added.bound.simulated_s);
        return;
    }
    added.too_small = !bounds_fit(&hunt->bounds, point);
    hunt->points =
        grow(hunt->points, hunt->point_count, &hunt->point_capacity, sizeof *hunt->points);
    hunt->points[hunt->point_count++] = added;
}

void listing_rest(struct hunt *hunt, int most)
{
    size_t listed = hunt->point_count, count = 0;
    for (int devices = hunt->least;
         devices <= most && hunt->step > 0 && !planner_stopped(hunt->request); devices++) {
        bool even = (most - devices) % hunt->step == 0;
        if (bounds_devices(&hunt->bounds, devices).formula_s >= hunt->best_s)
            continue;
        struct space_point *points = space_points(hunt->request, devices, devices, &count);
        for (size_t i = 0; i < count && !planner_stopped(hunt->request); i++)
            if (!(even && points[i].extra == EXTRA_NONE))
                judge_unlisted(hunt, &points[i]);
        free(points);
    }
    hunt->step = 0;
    if (hunt->point_count > listed)
        listing_sort(hunt);
}
