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

/* Of an illegal point nothing is known. */
static struct point_bound find_bound(struct hunt *hunt, const struct space_point *point)
{
    return bounds_legal(&hunt->basis, point) ? bounds_point(&hunt->basis, point)
                                             : (struct point_bound){0, 0};
}

static struct hunt_point make_point(struct hunt *hunt, const struct space_point *point,
                                    size_t index)
{
    return (struct hunt_point){.point = *point,
                               .bound = find_bound(hunt, point),
                               .hope_s = INFINITY,
                               .too_small = !bounds_fit(&hunt->basis, point),
                               .index = index};
}

void listing_again(struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->point_count; i++) {
        hunt->points[i].bound = find_bound(hunt, &hunt->points[i].point);
        hunt->points[i].relaxed = hunt->points[i].closed = false;
    }
}

/* Drop the points whose stages cannot divide any blocks. If none is left, all stay: opening them
 * tells why. */
static void keep_legal(struct hunt *hunt, struct space_point *points)
{
    size_t kept = 0;
    for (size_t i = 0; i < hunt->point_count; i++)
        if (bounds_legal(&hunt->basis, &points[i])) {
            struct space_point illegal = points[kept];
            points[kept++] = points[i];
            points[i] = illegal;
        }
    hunt->point_count = kept > 0 ? kept : hunt->point_count;
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
    keep_legal(hunt, points);
    hunt->points = xcalloc(hunt->point_count, sizeof *hunt->points);
    hunt->point_capacity = hunt->point_count;
    for (size_t i = 0; i < hunt->point_count; i++)
        hunt->points[i] = make_point(hunt, &points[i], i);
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
    if (!bounds_legal(&hunt->basis, point))
        return;
    struct hunt_point added = make_point(hunt, point, hunt->point_count);
    if (added.bound.formula_s >= hunt->best_s) {
        hunt->unlisted_s = fmin(hunt->unlisted_s, added.bound.simulated_s);
        return;
    }
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
        if (bounds_devices(&hunt->basis, devices).formula_s >= hunt->best_s)
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
