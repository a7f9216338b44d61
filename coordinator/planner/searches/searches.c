/* searches.c - the table of searches, and the loop that those share which solve points one by one:
 * a point is solved only if its lower bound leaves it a chance to be among the best. */
#include "coordinator/planner/searches/searches.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/hunt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct search search_autoddl, search_bmw, search_exact, search_exhaustive,
    search_galvatron, search_tensoropt, search_uniform;

const struct search *const searches[] = {
    &search_exact,   &search_uniform,   &search_bmw,        &search_tensoropt,
    &search_autoddl, &search_galvatron, &search_exhaustive, NULL};

const struct search *search_find(const char *name)
{
    for (int i = 0; name && searches[i]; i++)
        if (strcmp(searches[i]->name, name) == 0)
            return searches[i];
    return name ? NULL : searches[0];
}

/* Plans, at most one per point, that are simulated. */
#define CONFIRMED_MAX 8

struct plan *sweep_plan(const struct instance *instance, const int *ends,
                        const struct strategy *strategies)
{
    struct plan *plan = space_plan(instance->costs, &instance->point);
    for (int stage = 0, b = 0; stage < plan->stage_count; stage++) {
        plan->stages[stage].block_first = b;
        plan->stages[stage].block_count = ends[stage] - b;
        for (; b < ends[stage]; b++) {
            struct plan_block *block = &plan->blocks[b];
            memcpy(block->roles, strategies[b].roles, sizeof block->roles);
            block->zero = strategies[b].zero;
            block->recompute = strategies[b].recompute;
            block->stage = stage;
        }
    }
    return plan;
}

double sweep_judge(const struct instance *instance, const struct plan *plan)
{
    double step_s, bound_s;
    bool fits;
    int rc = evaluate_plan(instance->costs, plan, &step_s, &bound_s, &fits, NULL);
    return rc == 0 && fits ? step_s : INFINITY;
}

double sweep_seconds(const struct instance *instance, const struct part_cost *cost)
{
    return instance->point.micro_batches * (cost->forward_s + cost->backward_s) + cost->once_s;
}

uint64_t sweep_bytes(const struct instance *instance, int stage, const struct part_cost *cost)
{
    return cost->bytes.state + cost->bytes.communication +
           (uint64_t)instance->slots[stage] * cost->bytes.saved;
}

/* The best plans so far, best first. */
struct podium {
    struct plan *plans[CONFIRMED_MAX];
    size_t count;
};

/* Takes ownership of the plan. */
static void podium_offer(struct podium *podium, struct plan *plan)
{
    size_t place = podium->count;
    while (place > 0 && plan->predicted.formula_s < podium->plans[place - 1]->predicted.formula_s)
        place--;
    if (podium->count == CONFIRMED_MAX)
        plan_destroy(place < CONFIRMED_MAX ? podium->plans[--podium->count] : plan);
    if (place == CONFIRMED_MAX)
        return;
    memmove(&podium->plans[place + 1], &podium->plans[place],
            (podium->count - place) * sizeof *podium->plans);
    podium->plans[place] = plan;
    podium->count++;
}

static int sweep_point(struct hunt *hunt, const struct space_point *point,
                       const struct sweep *sweep, double upper_s, struct podium *podium,
                       struct error *err)
{
    struct instance instance;
    struct plan *plan = NULL;
    int rc = instance_init(&instance, &hunt->costs, point, false, INFINITY, err);
    if (rc == 0 && instance_formula_bound(&instance) < upper_s)
        plan = sweep->solve(&instance);
    if (plan) {
        plan->predicted.formula_s = sweep_judge(&instance, plan);
        podium_offer(podium, plan);
    }
    instance_finish(&instance);
    return rc;
}

static int by_bound(const void *first, const void *second)
{
    const struct hunt_point *a = first, *b = second;
    if (a->bound.formula_s != b->bound.formula_s)
        return a->bound.formula_s < b->bound.formula_s ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* A point whose bound is beyond the slack has hardly a chance to be best by simulation. */
static bool is_hopeless(const struct hunt *hunt, const struct hunt_point *point,
                        const struct podium *podium)
{
    if (podium->count == 0)
        return false;
    const struct plan *best = podium->plans[0];
    return point->bound.formula_s >= best->predicted.formula_s * (1 + hunt->limits.slack);
}

static int sweep_points(struct hunt *hunt, const struct sweep *sweep, struct podium *podium,
                        struct error *err)
{
    bool legal = false;
    struct error reason = {0};
    if (hunt->point_count > 1)
        qsort(hunt->points, hunt->point_count, sizeof *hunt->points, by_bound);
    for (size_t i = 0; i < hunt->point_count; i++) {
        const struct space_point *point = &hunt->points[i].point;
        if (is_hopeless(hunt, &hunt->points[i], podium))
            break;
        if (hunt->points[i].too_small ||
            (sweep->stages_max > 0 && point->stages > sweep->stages_max))
            continue;
        if (planner_stopped(hunt->request))
            break;
        double upper_s = podium->count > 0
                             ? podium->plans[0]->predicted.formula_s * (1 + hunt->limits.slack)
                             : INFINITY;
        if (sweep_point(hunt, point, sweep, upper_s, podium, &reason) == 0)
            legal = true;
        hunt->opened++;
    }
    if (legal)
        return 0;
    return error_set(err, -EINVAL, "plan.search %s: no legal plan%s%s", sweep->name,
                     reason.text[0] ? ": " : " with so few stages", reason.text);
}

static int sweep_devices(struct hunt *hunt, const struct sweep *sweep, int least, int most,
                         struct planner_result *out, struct error *err)
{
    struct podium podium = {.count = 0};
    int rc = hunt_points(hunt, least, most, err);
    if (rc == 0)
        rc = sweep_points(hunt, sweep, &podium, err);
    for (size_t i = 0; i < podium.count; i++) {
        if (rc == 0)
            rc = simulate_plan(&hunt->costs, podium.plans[i], out, err);
        else
            plan_destroy(podium.plans[i]);
    }
    out->looked_at += hunt->opened;
    return rc;
}

int sweep_run(const struct planner_request *request, const struct sweep *sweep,
              struct planner_result *out, struct error *err)
{
    struct hunt hunt;
    int least, most, rc = hunt_init(&hunt, request, &hunt_limits_standard, err);
    if (rc != 0)
        return rc;
    planner_limits(request, &least, &most);
    hunt.costs.narrow = most > hunt.limits.wide_devices;
    bool fewest = request->job->plan.objective == JOB_DEVICES, legal = false;
    for (int devices = least; fewest && devices <= most && !candidates_fits(out); devices++)
        legal = (rc = sweep_devices(&hunt, sweep, devices, devices, out, err)) == 0 || legal;
    if (!fewest)
        legal = (rc = sweep_devices(&hunt, sweep, least, most, out, err)) == 0;
    hunt_finish(&hunt);
    if (!legal)
        return rc;
    if (out->count > 0)
        return 0;
    return error_set(err, -ENOSPC,
                     "plan.search %s found no plan on %d to %d devices that fits; exact looks at "
                     "more, and says what would fit",
                     sweep->name, least, most);
}
