/* exhaustive.c - simulates every plan of the space: the reference for other searches on small
 * instances. */
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/searches/searches.h"
#include "coordinator/planner/space/space.h"

#include <errno.h>
#include <stdlib.h>

#define PLANS_MAX 5000.0

struct walk_all {
    const struct planner_request *request;
    struct planner_result *out;
    struct error *err;
    int rc;
};

static bool exhaustive_consider(void *context, const struct plan *plan)
{
    struct walk_all *all = context;
    all->rc = simulate_programs(all->request, plan_copy(plan), all->out, all->err);
    return all->rc == 0 && !planner_stopped(all->request);
}

static int exhaustive_walk(struct costs *costs, const struct space_point *points, size_t count,
                           struct planner_result *out, struct error *err)
{
    struct walk_all all = {costs->request, out, err, 0};
    double plans = 0;
    for (size_t i = 0; i < count && plans <= PLANS_MAX; i++)
        plans += space_count(costs, &points[i]);
    if (plans > PLANS_MAX)
        return error_set(err, -EINVAL,
                         "plan.search exhaustive looks at %.0f plans at most, and here are more: "
                         "pin or forbid something, or search exact",
                         PLANS_MAX);
    for (size_t i = 0; i < count && all.rc == 0 && !planner_stopped(all.request); i++)
        space_walk(costs, &points[i], exhaustive_consider, &all);
    if (all.rc == 0 && out->count == 0)
        return error_set(err, -EINVAL,
                         "no plan agrees with plan.pin and plan.forbid and the model's sizes");
    return all.rc;
}

static int exhaustive_search(const struct planner_request *request, struct planner_result *out,
                             struct error *err)
{
    struct costs costs;
    size_t count;
    int least, most, rc = costs_init(&costs, request, err);
    if (rc != 0)
        return rc;
    planner_limits(request, &least, &most);
    struct space_point *points = space_points(request, least, most, &count);
    rc = exhaustive_walk(&costs, points, count, out, err);
    free(points);
    costs_finish(&costs);
    return rc;
}

const struct search search_exhaustive = {.name = "exhaustive", .run = exhaustive_search};
