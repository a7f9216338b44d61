/* exact.c - the best plan of the whole space by the formula, confirmed by simulation.
 *
 * Points are opened in the order of their bounds and pruned by the best plan so far (hunt.c). The
 * best plans of points are then simulated, since the formula overestimates unequal stages, and
 * points that only the formula ruled out are resumed. A small space is enumerated once more: every
 * plan whose own bound is below the best simulated step is simulated too, least bound first. The
 * gap is what remains between the least bound and the best step. */
#include "coordinator/planner/searches/exact.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/confirm.h"
#include "coordinator/planner/searches/searches.h"

#include <errno.h>

/* To tell what would fit, memory is doubled until something does, then bisected this often. */
#define DOUBLINGS_MAX 12
#define HALVINGS 3

/* Search with `scale` times the memory; if a plan is found, *plan becomes a copy of the best by the
 * formula. */
static bool fits_scaled(struct hunt *hunt, int least, int most, double scale, struct plan **plan)
{
    sites_scale(&hunt->costs.sites, scale);
    if (hunt_run(hunt, least, most, NULL) < 0 || hunt->found_count == 0)
        return false;
    plan_destroy(*plan);
    *plan = plan_copy(hunt->found[0].plan);
    return true;
}

/* Nothing fits: find the plan that needs the least additional memory by scaling all memory, with
 * few roles. */
static int find_smallest(struct hunt *hunt, int least, int most, struct planner_result *out,
                         struct error *err)
{
    struct plan *plan = hunt->smallest;
    double low = 1, high = 1;
    hunt->smallest = NULL;
    if (plan)
        return simulate_plan(&hunt->costs, plan, out, err);
    hunt->limits.wide_devices = 0;
    for (int i = 0; i < DOUBLINGS_MAX && !plan && !planner_stopped(hunt->request); i++) {
        low = high;
        high *= 2;
        fits_scaled(hunt, least, most, high, &plan);
    }
    for (int i = 0; i < HALVINGS && plan && !planner_stopped(hunt->request); i++) {
        double middle = (low + high) / 2;
        if (fits_scaled(hunt, least, most, middle, &plan))
            high = middle;
        else
            low = middle;
    }
    sites_scale(&hunt->costs.sites, 0);
    if (!plan)
        return error_set(err, -EINVAL,
                         "no plan on %d to %d devices fits, with %g times their memory either: "
                         "plan.pin and plan.forbid leave no way to divide the model's blocks, or "
                         "it is too large by far",
                         least, most, high);
    return simulate_plan(&hunt->costs, plan, out, err);
}

/* Search on as many devices as the objective demands. */
static int exact_devices(struct hunt *hunt, int least, int most, struct planner_result *out,
                         struct error *err)
{
    if (hunt->request->job->plan.objective != JOB_DEVICES) {
        int rc = hunt_run(hunt, least, most, err);
        return rc < 0 ? rc : confirm_run(hunt, out, err);
    }
    int rc = -EINVAL;
    bool legal = false;
    for (int devices = least;
         devices <= most && !candidates_fits(out) && !planner_stopped(hunt->request); devices++) {
        rc = hunt_run(hunt, devices, devices, err);
        legal = legal || rc == 0;
        if (rc == 0)
            rc = confirm_run(hunt, out, err);
    }
    return legal ? 0 : rc;
}

int exact_run(const struct planner_request *request, const struct hunt_limits *limits,
              struct planner_result *out, struct error *err)
{
    struct hunt hunt;
    int least, most;
    planner_limits(request, &least, &most);
    int rc = hunt_init(&hunt, request, limits, err);
    if (rc == 0)
        rc = exact_devices(&hunt, least, most, out, err);
    if (rc == 0 && out->count == 0 && !err)
        rc = -ENOSPC; /* nobody wants to know what would fit */
    if (rc == 0 && out->count == 0)
        rc = find_smallest(&hunt, least, most, out, err);
    if (rc == 0 && request->job->plan.objective == JOB_FRONTIER && candidates_fits(out))
        rc = confirm_frontier(&hunt, least, most, out, err);
    hunt_finish(&hunt);
    return rc;
}

/* A quick search may overlook everything that fits; then whoever waits has to wait longer. */
static int exact_search(const struct planner_request *request, struct planner_result *out,
                        struct error *err)
{
    if (request->hurry) {
        struct error ignored;
        int rc = exact_run(request, &hunt_limits_quick, out, &ignored);
        if (rc == 0 && candidates_fits(out))
            return rc;
        candidates_finish(out);
    }
    return exact_run(request, &hunt_limits_standard, out, err);
}

const struct search search_exact = {.name = "exact", .run = exact_search};
