/* closing.c - enumerates the space, then simulates in the order of the bounds. */
#include "coordinator/planner/exact/closing.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/confirm.h"

#include <math.h>
#include <stdlib.h>

/* All plans of the space whose bounds are below the best simulated step. */
struct closing {
    struct hunt *hunt;
    double best_s;
    struct found *items;
    size_t count, capacity;
};

static bool collect(void *context, const struct plan *plan)
{
    struct closing *closing = context;
    double formula_s, bound_s;
    bool fits;
    if (planner_stopped(closing->hunt->request))
        return false;
    if (evaluate_plan(&closing->hunt->costs, plan, &formula_s, &bound_s, &fits, NULL) < 0 ||
        !fits || bound_s >= closing->best_s)
        return true;
    closing->items =
        grow(closing->items, closing->count, &closing->capacity, sizeof *closing->items);
    closing->items[closing->count] = (struct found){plan_copy(plan), formula_s, bound_s};
    closing->items[closing->count++].plan->predicted.formula_s = formula_s;
    return true;
}

static int by_bound(const void *first, const void *second)
{
    const struct found *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->formula_s < b->formula_s ? -1 : a->formula_s > b->formula_s;
}

bool closing_is_small(struct hunt *hunt)
{
    double plans = 0;
    if (isfinite(hunt->limits.plans) &&
        (hunt->request->device_count > 8 || hunt->request->graph->block_count > 8))
        return false;
    for (size_t i = 0; i < hunt->point_count && plans <= hunt->limits.plans; i++)
        plans += space_count(&hunt->costs, &hunt->points[i].point);
    return plans <= hunt->limits.plans;
}

int closing_run(struct hunt *hunt, double *best_s, double *least_s, struct planner_result *out,
                struct error *err)
{
    struct closing closing = {hunt, *best_s, NULL, 0, 0};
    int rc = 0;
    size_t i = 0;
    for (size_t p = 0; p < hunt->point_count; p++)
        space_walk(&hunt->costs, &hunt->points[p].point, collect, &closing);
    if (closing.count > 1)
        qsort(closing.items, closing.count, sizeof *closing.items, by_bound);
    for (; i < closing.count && i < hunt->limits.simulations && rc == 0; i++) {
        if (planner_stopped(hunt->request) || closing.items[i].bound_s >= *best_s)
            break;
        size_t count = out->count;
        rc = simulate_plan(&hunt->costs, closing.items[i].plan, out, err);
        closing.items[i].plan = NULL;
        if (rc < 0 || out->count == count) /* refused, or judged before */
            continue;
        const struct candidate *last = &out->candidates[out->count - 1];
        if (last->fits && last->plan->predicted.step_time_s < *best_s)
            *best_s = last->plan->predicted.step_time_s;
        else
            plan_destroy(out->candidates[--out->count].plan);
    }
    *least_s = fmax(*least_s, i < closing.count ? closing.items[i].bound_s : *best_s);
    *least_s = fmin(*least_s, *best_s);
    out->looked_at += closing.count;
    for (; i < closing.count; i++)
        plan_destroy(closing.items[i].plan);
    free(closing.items);
    return rc;
}
