/* hunt.c - the outer loop: a point is opened only if its bound leaves hope.
 *
 * The bound needs no strategies: T of one device for all blocks, shared out. However a stage of c
 * devices divides its blocks, one of them has a c-th of their work at least. */
#include "coordinator/planner/hunt.h"

#include "common/base/memory.h"
#include "coordinator/planner/evaluate.h"
#include "coordinator/planner/guess.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RELAXED_LABELS 8
#define PIPELINE_LABELS 25
/* Where nothing fits with few roles, others are tried for so much shorter. */
#define HOPELESS 10

const struct hunt_limits hunt_limits_standard = {.labels = 1000,
                                                 .choices = 60,
                                                 .pairs = 8,
                                                 .parts = 20000,
                                                 .wide_devices = 8,
                                                 .plans = 20000,
                                                 .simulations = 48,
                                                 .slack = 0.03};
const struct hunt_limits hunt_limits_none = {.labels = SIZE_MAX,
                                             .choices = SIZE_MAX,
                                             .pairs = SIZE_MAX,
                                             .parts = SIZE_MAX,
                                             .wide_devices = INT_MAX,
                                             .plans = INFINITY,
                                             .simulations = SIZE_MAX,
                                             .slack = 0.1};

int hunt_init(struct hunt *hunt, const struct planner_request *request,
              const struct hunt_limits *limits, struct error *err)
{
    *hunt = (struct hunt){.request = request, .limits = *limits};
    return costs_init(&hunt->costs, request, err);
}

static void forget(struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->found_count; i++)
        plan_destroy(hunt->found[i].plan);
    hunt->found_count = 0;
    free(hunt->points);
    free(hunt->bounds_s);
    hunt->points = NULL;
    hunt->bounds_s = NULL;
    hunt->opened = 0;
    hunt->best_s = hunt->formula_least_s = hunt->least_s = INFINITY;
}

void hunt_finish(struct hunt *hunt)
{
    forget(hunt);
    free(hunt->found);
    costs_finish(&hunt->costs);
}

/* All blocks on one device of this number, once. */
static double alone_seconds(struct hunt *hunt, int device, int64_t samples)
{
    struct mesh mesh = {0};
    struct strategy strategy = {0};
    const struct site *site = sites_add(&hunt->costs.sites, device, &mesh);
    double seconds = 0;
    for (int b = 0; b < (int)hunt->request->graph->block_count; b++) {
        struct part_cost cost = {0};
        costs_block(&hunt->costs, site, b, &strategy, NULL, samples, &cost, NULL);
        seconds += cost.least_s;
    }
    return seconds;
}

/* On the fastest of the devices. */
static double fastest_seconds(struct hunt *hunt, int64_t samples)
{
    double least = INFINITY;
    for (int i = 0; i < hunt->request->device_count; i++)
        if (i == 0 || hunt->request->devices[i].profile != hunt->request->devices[i - 1].profile)
            least = fmin(least, alone_seconds(hunt, i, samples));
    return least;
}

/* By the formula; *simulated_s: by simulation. */
static double point_bound(const struct space_point *point, double alone_s, double *simulated_s)
{
    int largest = (point->devices + point->stages - 1) / point->stages;
    double pass = alone_s / largest, share = alone_s / point->devices;
    *simulated_s = fmax(pass, point->micro_batches * share);
    return pass + (point->micro_batches - 1) * share;
}

struct ranked {
    struct space_point point;
    double bound_s;
    size_t index;
};

static int by_bound(const void *first, const void *second)
{
    const struct ranked *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void rank_points(struct hunt *hunt)
{
    size_t count = hunt->point_count;
    struct ranked *ranked = xcalloc(count, sizeof *ranked);
    double alone_s = 0, simulated_s;
    for (size_t i = 0; i < count; i++) {
        /* Points that follow each other mostly have as many samples. */
        size_t known = 0;
        while (known < i && hunt->points[known].samples != hunt->points[i].samples)
            known++;
        if (known < i)
            alone_s = ranked[known].bound_s;
        else
            alone_s = fastest_seconds(hunt, hunt->points[i].samples);
        ranked[i] = (struct ranked){hunt->points[i], alone_s, i};
    }
    for (size_t i = 0; i < count; i++)
        ranked[i].bound_s = point_bound(&ranked[i].point, ranked[i].bound_s, &simulated_s);
    qsort(ranked, count, sizeof *ranked, by_bound);
    hunt->bounds_s = xcalloc(count, sizeof *hunt->bounds_s);
    for (size_t i = 0; i < count; i++) {
        hunt->points[i] = ranked[i].point;
        hunt->bounds_s[i] = ranked[i].bound_s;
    }
    free(ranked);
}

/* Takes the plan. */
static void add_found(struct hunt *hunt, struct plan *plan, double formula_s)
{
    double again_s, bound_s;
    bool fits;
    plan_name(plan);
    for (size_t i = 0; i < hunt->found_count; i++)
        if (strcmp(hunt->found[i].plan->id, plan->id) == 0) { /* with few roles already */
            plan_destroy(plan);
            return;
        }
    evaluate_plan(&hunt->costs, plan, &again_s, &bound_s, &fits, NULL);
    plan->predicted.formula_s = formula_s;
    hunt->found = grow(hunt->found, hunt->found_count, &hunt->found_capacity, sizeof *hunt->found);
    hunt->found[hunt->found_count++] = (struct found){plan, formula_s, bound_s};
}

/* Of one stage only m T + u counts: without memory few labels are not dominated. A pipeline's
 * stages have many, and many runs of blocks. */
static void set_limits(const struct hunt *hunt, struct frontiers *frontiers)
{
    bool one = frontiers->one_stage, relaxed = frontiers->instance->relaxed;
    size_t labels = hunt->limits.labels, pairs = hunt->limits.pairs;
    frontiers->most = labels;
    frontiers->pairs = pairs;
    if (labels != SIZE_MAX)
        frontiers->most = !one      ? labels / PIPELINE_LABELS
                          : relaxed ? labels * RELAXED_LABELS
                                    : labels;
    if (pairs != SIZE_MAX)
        frontiers->pairs = !one ? pairs / 2 : relaxed ? pairs * RELAXED_LABELS : pairs;
}

/* The best plan of an instance below upper_s, or NULL; *least_s: none of its plans is shorter. */
static struct plan *solve(struct hunt *hunt, struct instance *instance, double upper_s,
                          double *least_s, double *formula_s)
{
    struct frontiers frontiers;
    struct plan *plan = NULL;
    *least_s = fmax(*least_s, instance_formula_bound(instance));
    if (*least_s >= upper_s)
        return NULL;
    double guess_s;
    struct plan *guess = guess_plan(instance, &guess_s);
    double tie_s = guess_s * (1 + 1e-9); /* so that it is found again */
    frontiers_init(&frontiers, instance);
    frontiers.upper_s = fmin(upper_s, tie_s);
    size_t choices = instance->relaxed ? SIZE_MAX : hunt->limits.choices;
    frontiers.cut = instance_prune(instance, frontiers.upper_s, choices);
    set_limits(hunt, &frontiers);
    plan = partition_solve(&frontiers);
    *formula_s = frontiers.upper_s;
    if (!plan && guess_s < upper_s) { /* it was cut off */
        plan = guess;
        guess = NULL;
        *formula_s = guess_s;
    }
    plan_destroy(guess);
    if (!frontiers.cut)
        *least_s = fmax(*least_s, plan ? *formula_s : upper_s);
    frontiers_finish(&frontiers);
    return plan;
}

/* With all strategies and memory as it is. */
static int solve_whole(struct hunt *hunt, const struct space_point *point, double upper_s,
                       double *least_s, struct error *err)
{
    struct instance instance;
    double formula_s;
    int rc = instance_init(&instance, &hunt->costs, point, false, err);
    if (rc == 0) {
        struct plan *plan = solve(hunt, &instance, upper_s, least_s, &formula_s);
        if (plan)
            add_found(hunt, plan, formula_s);
        if (plan && formula_s < hunt->best_s)
            hunt->best_s = formula_s;
    }
    instance_finish(&instance);
    return rc;
}

/* Relaxed first: a point whose best is too slow with all the memory there could be is done with,
 * and so is one whose fastest plan fits. 0: it was legal. */
static int open_point(struct hunt *hunt, const struct space_point *point, struct error *err)
{
    struct instance instance;
    double upper_s = hunt->best_s * (1 + hunt->limits.slack), least_s = 0, formula_s, again_s;
    double bound_s;
    bool fits = false;
    int rc = instance_init(&instance, &hunt->costs, point, true, err);
    struct plan *plan = NULL;
    if (rc == 0) {
        hunt->opened++;
        hunt->least_s = fmin(hunt->least_s, instance_bound(&instance));
        plan = solve(hunt, &instance, upper_s, &least_s, &formula_s);
    }
    instance_finish(&instance);
    if (rc < 0 || least_s >= upper_s)
        return rc;
    if (plan)
        evaluate_plan(&hunt->costs, plan, &again_s, &bound_s, &fits, NULL);
    if (plan && fits && again_s <= least_s * (1 + 1e-9)) {
        add_found(hunt, plan, again_s);
        hunt->best_s = fmin(hunt->best_s, again_s);
        return 0;
    }
    plan_destroy(plan);
    rc = solve_whole(hunt, point, upper_s, &least_s, err);
    hunt->formula_least_s = fmin(hunt->formula_least_s, least_s);
    return rc;
}

static int by_formula(const void *first, const void *second)
{
    const struct found *a = first, *b = second;
    if (a->formula_s != b->formula_s)
        return a->formula_s < b->formula_s ? -1 : 1;
    return plan_ranks(a->plan) - plan_ranks(b->plan);
}

/* Points from this one on may hold plans that nobody looked at. */
static void leave_points(struct hunt *hunt, size_t first)
{
    for (size_t i = first; i < hunt->point_count; i++) {
        const struct space_point *point = &hunt->points[i];
        int largest = (point->devices + point->stages - 1) / point->stages;
        double per_alone = 1.0 / largest + (point->micro_batches - 1.0) / point->devices;
        double simulated_s;
        point_bound(point, hunt->bounds_s[i] / per_alone, &simulated_s);
        hunt->formula_least_s = fmin(hunt->formula_least_s, hunt->bounds_s[i]);
        hunt->least_s = fmin(hunt->least_s, simulated_s);
    }
}

/* In order, until a bound leaves no hope or the limits are met. Returns how many were opened. */
static size_t open_points(struct hunt *hunt, bool *legal, int *rc, struct error *err)
{
    size_t lowered = hunt->costs.lowered, i = 0;
    for (; i < hunt->point_count; i++) {
        bool hopeless = !hunt->costs.narrow && hunt->found_count == 0;
        size_t parts = hopeless && isfinite(hunt->limits.plans) ? hunt->limits.parts / HOPELESS
                                                                : hunt->limits.parts;
        if (planner_stopped(hunt->request) ||
            hunt->bounds_s[i] >= hunt->best_s * (1 + hunt->limits.slack) ||
            ((hunt->found_count > 0 || hopeless) && hunt->costs.lowered - lowered > parts))
            break;
        struct error reason = {0};
        int opened = open_point(hunt, &hunt->points[i], &reason);
        *legal = *legal || opened == 0;
        /* What the model's sizes refuse says more than what was not allowed. */
        if (opened < 0 && *rc != -ERANGE)
            *rc = error_set(err, opened, "%s", reason.text);
    }
    return i;
}

int hunt_points(struct hunt *hunt, int least, int most, struct error *err)
{
    forget(hunt);
    hunt->points = space_points(hunt->request, least, most, &hunt->point_count);
    if (hunt->point_count == 0)
        return error_set(err, -EINVAL,
                         "no plan on %d to %d devices agrees with plan.pin and plan.forbid, a "
                         "global batch of %lld and %zu layers",
                         least, most, (long long)hunt->request->job->train.global_batch,
                         hunt->request->graph->block_count - 2);
    rank_points(hunt);
    return 0;
}

int hunt_run(struct hunt *hunt, int least, int most, struct error *err)
{
    bool legal = false;
    int rc = hunt_points(hunt, least, most, err);
    if (rc < 0)
        return rc;
    /* With few roles first: what is found prunes the rest. */
    hunt->costs.narrow = true;
    size_t opened = open_points(hunt, &legal, &rc, err);
    bool wide = most <= hunt->limits.wide_devices || !legal;
    if (wide) {
        hunt->costs.narrow = false;
        hunt->formula_least_s = hunt->least_s = INFINITY;
        opened = open_points(hunt, &legal, &rc, err);
    }
    /* Of points that were not opened, or only in part, the bounds remain. */
    leave_points(hunt, wide ? opened : 0);
    if (!legal)
        return error_prefix(err, -EINVAL, "no legal plan on %d to %d devices", least, most);
    hunt->formula_least_s = fmin(hunt->formula_least_s, hunt->best_s);
    if (hunt->found_count > 1)
        qsort(hunt->found, hunt->found_count, sizeof *hunt->found, by_formula);
    return 0;
}
