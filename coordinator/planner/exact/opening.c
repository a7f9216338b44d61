/* opening.c - an instance of the point's choices, and its best plan. */
#include "coordinator/planner/exact/opening.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/events.h"
#include "coordinator/planner/exact/guess.h"

#include <errno.h>
#include <math.h>

#define RELAXED_PAIRS 8

/* Doubled so often; SIZE_MAX is no limit. */
static size_t doubled(size_t limit, int times)
{
    return times < 0 ? limit : limit > SIZE_MAX >> times ? SIZE_MAX : limit << times;
}

/* Of one stage only m T + u counts: without memory few labels are not dominated. A pipeline's
 * stages have many, and many runs of blocks. */
static void set_limits(const struct hunt *hunt, int depth, struct frontiers *frontiers)
{
    bool one = frontiers->one_stage, relaxed = frontiers->instance->relaxed;
    size_t pairs = doubled(hunt->limits.pairs, 3 * depth);
    frontiers->most = doubled(one ? hunt->limits.labels : hunt->limits.pipeline_labels, depth - 1);
    frontiers->pairs = pairs;
    if (pairs != SIZE_MAX)
        frontiers->pairs = !one ? pairs / 2 : relaxed ? pairs * RELAXED_PAIRS : pairs;
}

/* So that what takes so long is found again. */
static double tie_of(double seconds)
{
    return seconds * (1 + 1e-9);
}

/* The best plan of filled choices below upper_s, or NULL: a guess is better than none, and taken.
 */
static struct plan *solve_filled(struct hunt *hunt, struct hunt_point *at,
                                 struct instance *instance, struct plan **guess, double guess_s,
                                 double *least_s, double *formula_s)
{
    struct frontiers frontiers;
    double upper_s = instance->upper_s;
    frontiers_init(&frontiers, instance);
    frontiers.upper_s = fmin(upper_s, tie_of(guess_s));
    size_t choices = instance->relaxed ? SIZE_MAX : doubled(hunt->limits.choices, at->depth - 1);
    frontiers.omitted_s = instance_prune(instance, frontiers.upper_s, choices);
    set_limits(hunt, at->depth, &frontiers);
    struct plan *plan = partition_solve(&frontiers);
    at->joined = frontiers.joined;
    *formula_s = frontiers.upper_s;
    if (!plan && guess_s < upper_s) { /* it was cut off */
        plan = *guess;
        *guess = NULL;
        *formula_s = guess_s;
    }
    *least_s = fmax(*least_s, fmin(plan ? *formula_s : upper_s, frontiers.omitted_s));
    frontiers_finish(&frontiers);
    return plan;
}

/* The best plan of a surveyed instance below upper_s, or NULL; *least_s: none of its plans is
 * shorter. Of one stage what is guessed from the best of each block says which strategies are worth
 * a look; *guess, if it is not the plan, is the caller's. */
static int solve(struct hunt *hunt, struct hunt_point *at, struct instance *instance,
                 double *least_s, struct plan **plan, struct plan **guess, double *formula_s,
                 struct error *err)
{
    double upper_s = instance->upper_s, guess_s = INFINITY;
    *least_s = fmax(*least_s, instance_formula_bound(instance));
    if (instance->point.stages == 1 && *least_s < upper_s)
        *guess = guess_plan(instance, &guess_s);
    int rc = instance_fill(instance, fmin(upper_s, tie_of(guess_s)), err);
    *least_s = fmax(*least_s, fmax(instance_formula_bound(instance), instance->price.bound_s));
    if (rc < 0 || *least_s >= upper_s)
        return rc;
    if (!*guess)
        *guess = guess_plan(instance, &guess_s);
    *plan = solve_filled(hunt, at, instance, guess, guess_s, least_s, formula_s);
    return rc;
}

/* Plans that take so long by the formula are not looked for. It over-estimates pipelines whose
 * stages are unequal: of them those are confirmed too that seem somewhat worse than the best, but
 * for many devices, where to look for them takes long. The best itself may take longer than the
 * formula says: once it was simulated, that counts. */
static double reach(const struct hunt *hunt, const struct space_point *point)
{
    bool more = point->stages > 1 && point->devices <= hunt->limits.wide_devices;
    double reach_s = hunt->best_s * (more ? 1 + hunt->limits.slack : 1);
    if (isinf(hunt->simulated_s))
        return reach_s;
    return fmax(reach_s, hunt->simulated_s * (more ? 1 + hunt->limits.over : 1));
}

/* The first schedule needs the least memory, and by the formula all take the same time: what a
 * point with another has, its like with the first has too. */
static bool is_covered(const struct hunt *hunt, const struct space_point *point)
{
    return point->schedule != schedules[0] && !hunt->request->job->plan.schedule;
}

static bool are_like(const struct space_point *a, const struct space_point *b)
{
    return a->devices == b->devices && a->stages == b->stages && a->extra == b->extra &&
           a->weighted == b->weighted && a->micro_batches == b->micro_batches;
}

/* What a plan that takes so long by the formula takes at least by simulation. */
static double simulated_of(const struct hunt *hunt, const struct space_point *point,
                           double formula_s)
{
    if (!bounds_large(&hunt->bounds, point))
        return 0;
    return events_share(point->schedule, point->stages, point->micro_batches) * formula_s;
}

/* What is learnt of a point holds for those that it covers. With few roles it holds for plans of
 * these alone: see space_roles. */
static void learn(struct hunt *hunt, struct hunt_point *point, double formula_s, double simulated_s)
{
    for (size_t i = 0; i < hunt->point_count; i++) {
        struct hunt_point *like = &hunt->points[i];
        if (like != point &&
            !(is_covered(hunt, &like->point) && are_like(&like->point, &point->point)))
            continue;
        like->bound.formula_s = fmax(like->bound.formula_s, formula_s);
        like->bound.simulated_s =
            fmax(like->bound.simulated_s,
                 fmax(simulated_s, simulated_of(hunt, &like->point, formula_s)));
    }
}

/* Takes a plan that is alike in all blocks: where the formula finds it hardly worse than the best,
 * simulation may find it better. */
static void offer_guess(struct hunt *hunt, struct plan *guess)
{
    double formula_s, bound_s;
    bool fits;
    if (guess && evaluate_plan(&hunt->costs, guess, &formula_s, &bound_s, &fits, NULL) == 0 &&
        fits && formula_s < hunt->best_s * (1 + hunt->limits.enough)) {
        hunt_add(hunt, guess, formula_s);
    } else {
        plan_destroy(guess);
    }
}

/* With all strategies and memory as it is. 0: it was legal. */
static int open_whole(struct hunt *hunt, struct hunt_point *at, double upper_s, double least_s,
                      struct error *err)
{
    struct instance instance;
    double formula_s;
    struct plan *plan = NULL, *guess = NULL;
    int rc = instance_survey(&instance, &hunt->costs, &at->point, false, upper_s, err);
    if (rc == 0)
        rc = solve(hunt, at, &instance, &least_s, &plan, &guess, &formula_s, err);
    if (rc == 0) {
        at->found = at->found || plan;
        if (plan)
            hunt_add(hunt, plan, formula_s);
        learn(hunt, at, least_s, instance_bound(&instance));
    }
    instance_finish(&instance);
    offer_guess(hunt, guess);
    return rc;
}

/* With all the memory there could be: *least_s is what no plan of the point is shorter than. *done:
 * its fastest plan fits, nothing else has to be looked for, or nothing that is worth it. One that
 * fits is to be beaten, though it was chosen by the times of one rank. */
static int open_relaxed(struct hunt *hunt, struct hunt_point *at, double upper_s, double *least_s,
                        bool *done, struct error *err)
{
    struct instance instance;
    struct plan *plan = NULL, *guess = NULL;
    double formula_s, again_s, bound_s;
    bool fits = false;
    int rc = instance_survey(&instance, &hunt->costs, &at->point, true, upper_s, err);
    if (rc == 0)
        rc = solve(hunt, at, &instance, least_s, &plan, &guess, &formula_s, err);
    if (rc == 0)
        learn(hunt, at, *least_s, instance_bound(&instance));
    instance_finish(&instance); /* and with it times of one rank alone */
    if (plan)
        evaluate_plan(&hunt->costs, plan, &again_s, &bound_s, &fits, NULL);
    *done = plan && fits && again_s <= *least_s * (1 + hunt->limits.enough);
    at->found = at->found || *done;
    if (*done && again_s <= tie_of(*least_s))
        learn(hunt, at, again_s, 0);
    if (*done || (fits && again_s < hunt->best_s)) {
        hunt_add(hunt, plan, again_s);
    } else {
        plan_destroy(plan);
    }
    offer_guess(hunt, guess);
    return rc;
}

bool opening_is_hopeless(const struct hunt *hunt, const struct hunt_point *point)
{
    return point->too_small || is_covered(hunt, &point->point) ||
           point->bound.formula_s >= reach(hunt, &point->point);
}

bool opening_is_due(const struct hunt *hunt, const struct hunt_point *at)
{
    return !at->relaxed && !opening_is_hopeless(hunt, at);
}

bool opening_is_open(const struct hunt *hunt, const struct hunt_point *at)
{
    return at->relaxed && !at->closed && !opening_is_hopeless(hunt, at);
}

void opening_bound(struct hunt *hunt, struct hunt_point *at)
{
    if (!hunt->bounds.unlike)
        return;
    struct point_bound bound = bounds_unlike(&hunt->bounds, &at->point);
    at->too_small = at->too_small || isinf(bound.formula_s);
    if (at->too_small)
        return;
    at->bound.formula_s = fmax(at->bound.formula_s, bound.formula_s);
    at->bound.simulated_s = fmax(at->bound.simulated_s, bound.simulated_s);
}

bool opening_relax(struct hunt *hunt, struct hunt_point *at, int *rc, struct error *err)
{
    struct error reason = {0};
    double least_s = 0;
    hunt->opened++;
    at->relaxed = true;
    int opened = open_relaxed(hunt, at, reach(hunt, &at->point), &least_s, &at->closed, &reason);
    if (opened == 0)
        return true;
    learn(hunt, at, INFINITY, INFINITY); /* it has no plans */
    at->closed = true;
    /* What the model's sizes refuse says more than what was not allowed. */
    if (*rc != -ERANGE)
        *rc = error_set(err, opened, "%s", reason.text);
    return false;
}

void opening_close(struct hunt *hunt, struct hunt_point *at)
{
    at->closed = true;
    if (open_whole(hunt, at, reach(hunt, &at->point), at->bound.formula_s, NULL) < 0)
        learn(hunt, at, INFINITY, INFINITY);
}

void opening_deepen(struct hunt *hunt, struct hunt_point *at)
{
    at->depth++;
    open_whole(hunt, at, hunt->best_s, at->bound.formula_s, NULL);
}

bool opening_is_covered(const struct hunt *hunt, const struct hunt_point *at)
{
    return is_covered(hunt, &at->point);
}
