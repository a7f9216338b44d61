/* opening.c - builds the instance of a point and finds its best plan. */
#include "coordinator/planner/exact/opening.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/guess.h"

#include <errno.h>
#include <math.h>

#define RELAXED_PAIRS 8

/* The limit doubled this many times; SIZE_MAX is no limit. */
static size_t doubled(size_t limit, int times)
{
    return times < 0 ? limit : limit > SIZE_MAX >> times ? SIZE_MAX : limit << times;
}

/* With one stage only m T + u counts, and with unlimited memory few labels are not dominated.
 * Stages of a pipeline have many labels and many runs of blocks. */
static void set_limits(const struct hunt *hunt, int depth, struct frontiers *frontiers)
{
    bool one = frontiers->one_stage, relaxed = frontiers->instance->relaxed;
    size_t pairs = doubled(hunt->limits.pairs, 3 * depth);
    frontiers->most = doubled(one ? hunt->limits.labels : hunt->limits.pipeline_labels, depth - 1);
    frontiers->pairs = pairs;
    if (pairs != SIZE_MAX)
        frontiers->pairs = !one ? pairs / 2 : relaxed ? pairs * RELAXED_PAIRS : pairs;
}

/* Slightly more, so that a plan with just this time is found again. */
static double tie_of(double seconds)
{
    return seconds * (1 + 1e-9);
}

/* The best plan of filled choices that is faster than upper_s, or NULL. A guess is better than none
 * and is taken if the search cut it off. */
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
    if (!plan && guess_s < upper_s) { /* the search cut it off */
        plan = *guess;
        *guess = NULL;
        *formula_s = guess_s;
    }
    *least_s = fmax(*least_s, fmin(plan ? *formula_s : upper_s, frontiers.omitted_s));
    frontiers_finish(&frontiers);
    return plan;
}

/* The best plan of a surveyed instance below upper_s, or NULL; *least_s is raised to a lower bound
 * on its plans. For one stage a guess, made from the best choice of each block, tells which
 * strategies are worth pricing; *guess, if it is not the plan, belongs to the caller. */
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

/* Plans that take this long by the formula are not wanted. The formula overestimates pipelines with
 * unequal stages, so plans that seem slightly worse than the best are confirmed too, except for
 * many devices, where finding them takes long. The best plan itself may take longer in simulation
 * than by the formula; once simulated, that counts. */
static double reach(const struct hunt *hunt, const struct space_point *point)
{
    bool more = point->stages > 1 && point->devices <= hunt->limits.wide_devices;
    double reach_s = hunt->best_s * (more ? 1 + hunt->limits.slack : 1);
    if (isinf(hunt->simulated_s))
        return reach_s;
    return fmax(reach_s, hunt->simulated_s * (more ? 1 + hunt->limits.over : 1));
}

/* By the formula all schedules take the same time, and the first one needs the least memory:
 * whatever fits with another schedule fits with the first. */
static bool is_covered(const struct hunt *hunt, const struct space_point *point)
{
    return point->schedule != schedules[0] && !hunt->request->job->plan.schedule;
}

static bool are_like(const struct space_point *a, const struct space_point *b)
{
    return a->devices == b->devices && a->stages == b->stages && a->extra == b->extra &&
           a->weighted == b->weighted && a->micro_batches == b->micro_batches;
}

/* Lower bound by simulation on a plan with this time by the formula. */
static double simulated_of(const struct hunt *hunt, const struct space_point *point,
                           double formula_s)
{
    if (!bounds_large(&hunt->basis, point))
        return 0;
    return stages_share(point->schedule, point->stages, point->micro_batches) * formula_s;
}

/* What is learned of a point holds for those that it covers. While only few roles are tried, it
 * holds for plans of these roles; see space_roles(). */
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

/* What an instance proves by simulation. */
static double simulated_bound(const struct hunt *hunt, const struct instance *instance)
{
    double bound_s = instance_bound(instance);
    return bounds_large(&hunt->basis, &instance->point)
               ? fmax(bound_s, instance_events_bound(instance))
               : bound_s;
}

/* Takes ownership of the guess, a plan alike in all blocks: if the formula finds it hardly worse
 * than the best, simulation may find it better. */
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

/* Search the point with all strategies and the memory there is. 0: the point is legal. */
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
        learn(hunt, at, least_s, simulated_bound(hunt, &instance));
    }
    instance_finish(&instance);
    offer_guess(hunt, guess);
    return rc;
}

/* Search the point with unlimited memory. *least_s is a lower bound on all its plans. *done: its
 * fastest plan fits, or nothing else is worth looking for. A plan that fits serves as a target to
 * beat, although it was chosen by the times of one rank. */
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
        learn(hunt, at, *least_s, simulated_bound(hunt, &instance));
    instance_finish(&instance); /* ends the use of one rank's times */
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
    if (!hunt->basis.unlike)
        return;
    struct point_bound bound = bounds_unlike(&hunt->basis, &at->point);
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
    /* A refusal by the model's sizes says more than one by what the job allows. */
    if (*rc != -ERANGE)
        *rc = error_set(err, opened, "%s", reason.text);
    return false;
}

void opening_survey(struct hunt *hunt, struct hunt_point *at)
{
    struct instance instance;
    at->surveyed = true;
    if (instance_survey(&instance, &hunt->costs, &at->point, true, reach(hunt, &at->point), NULL) ==
        0)
        learn(hunt, at, instance_formula_bound(&instance), simulated_bound(hunt, &instance));
    instance_finish(&instance);
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
