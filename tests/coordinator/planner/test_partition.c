/* test_partition.c - under the formula the search finds what exhaustion finds. */
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/exact/partition.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define INSTANCES 600
#define PLANS_MAX 1500.0

struct oracle {
    struct costs *costs;
    double best_s;
    int plans, fitting;
};

static bool look(void *context, const struct plan *plan)
{
    struct oracle *oracle = context;
    double step_s, bound_s;
    bool fits;
    ck_assert_int_eq(evaluate_plan(oracle->costs, plan, &step_s, &bound_s, &fits, NULL), 0);
    oracle->plans++;
    oracle->fitting += fits;
    if (fits)
        oracle->best_s = fmin(oracle->best_s, step_s);
    return true;
}

/* The best of a point, or infinity. */
static double search(struct costs *costs, const struct space_point *point)
{
    struct instance instance;
    struct frontiers frontiers;
    double best_s = INFINITY;
    if (instance_init(&instance, costs, point, false, INFINITY, NULL) == 0) {
        frontiers_init(&frontiers, &instance);
        struct plan *plan = partition_solve(&frontiers);
        double bound_s, formula_s;
        bool fits;
        if (plan) {
            best_s = frontiers.upper_s;
            ck_assert_int_eq(evaluate_plan(costs, plan, &formula_s, &bound_s, &fits, NULL), 0);
            ck_assert(fits);
            ck_assert_double_eq_tol(formula_s, best_s, 1e-9 * best_s);
            ck_assert_double_le(instance_formula_bound(&instance), best_s * (1 + 1e-9));
            ck_assert_double_le(instance.price.bound_s, best_s * (1 + 1e-9));
            plan_destroy(plan);
        }
        ck_assert(!isfinite(frontiers.omitted_s));
        frontiers_finish(&frontiers);
    }
    instance_finish(&instance);
    return best_s;
}

/* Where only plans below upper_s are wanted: no bound is above what a shorter one takes. */
static void search_below(struct costs *costs, const struct space_point *point, double best_s,
                         double upper_s)
{
    struct instance instance;
    struct frontiers frontiers;
    bool wanted = best_s < upper_s * (1 - 1e-9);
    if (instance_init(&instance, costs, point, false, upper_s, NULL) == 0 && wanted) {
        ck_assert_double_le(instance_formula_bound(&instance), best_s * (1 + 1e-9));
        frontiers_init(&frontiers, &instance);
        frontiers.upper_s = upper_s;
        frontiers.omitted_s = instance_prune(&instance, upper_s, SIZE_MAX);
        struct plan *plan = partition_solve(&frontiers);
        ck_assert_msg(plan && frontiers.upper_s <= best_s * (1 + 1e-9),
                      "%.9g was missed below %.9g", best_s, upper_s);
        plan_destroy(plan);
        frontiers_finish(&frontiers);
    }
    instance_finish(&instance);
}

/* As if memory were no object: no bound is above what the best takes that fits. */
static void search_relaxed(struct costs *costs, const struct space_point *point, double best_s)
{
    struct instance instance;
    if (instance_init(&instance, costs, point, true, INFINITY, NULL) == 0)
        ck_assert_double_le(instance_formula_bound(&instance), best_s * (1 + 1e-9));
    instance_finish(&instance);
}

/* With little of one thing: either the best is found, or what was left out may hold it. */
static void search_briefly(struct costs *costs, const struct space_point *point, double best_s,
                           size_t choices, size_t labels, size_t pairs)
{
    struct instance instance;
    struct frontiers frontiers;
    if (instance_init(&instance, costs, point, false, INFINITY, NULL) == 0) {
        frontiers_init(&frontiers, &instance);
        frontiers.omitted_s = instance_prune(&instance, INFINITY, choices);
        frontiers.most = labels;
        frontiers.pairs = pairs;
        struct plan *plan = partition_solve(&frontiers);
        bool found = plan && frontiers.upper_s <= best_s * (1 + 1e-9);
        ck_assert_msg(found || isinf(best_s) || frontiers.omitted_s <= best_s * (1 + 1e-9),
                      "%.9g was missed, and left out is nothing below %.9g", best_s,
                      frontiers.omitted_s);
        plan_destroy(plan);
        frontiers_finish(&frontiers);
    }
    instance_finish(&instance);
}

START_TEST(no_plan_of_the_space_is_better_by_the_formula)
{
    struct drawn drawn;
    struct costs costs;
    struct basis basis;
    size_t count;
    drawn_init(&drawn, test_seed() + (uint64_t)_i);
    ck_assert_int_eq(costs_init(&costs, &drawn.request, NULL), 0);
    basis_init(&basis, &costs);
    struct space_point *points = space_points(&drawn.request, drawn.devices, drawn.devices, &count);
    for (size_t i = 0; i < count; i++) {
        struct oracle oracle = {&costs, INFINITY, 0, 0};
        double plans = space_count(&costs, &points[i]);
        if (plans > PLANS_MAX)
            continue;
        space_walk(&costs, &points[i], look, &oracle);
        ck_assert_double_eq(plans, oracle.plans);
        ck_assert(isinf(oracle.best_s) || bounds_fit(&basis, &points[i]));
        double found_s = search(&costs, &points[i]);
        if (isinf(oracle.best_s))
            ck_assert(isinf(found_s));
        else
            ck_assert_double_eq_tol(found_s, oracle.best_s, 1e-9 * oracle.best_s);
        struct point_bound bound;
        if (bounds_legal(&basis, &points[i])) {
            bound = bounds_point(&basis, &points[i]);
            ck_assert_double_le(bound.formula_s, oracle.best_s * (1 + 1e-9));
        } else {
            ck_assert_double_eq(plans, 0);
        }
        bound = bounds_unlike(&basis, &points[i]);
        ck_assert(isinf(oracle.best_s) || bound.formula_s <= oracle.best_s * (1 + 1e-9));
        search_relaxed(&costs, &points[i], oracle.best_s);
        search_below(&costs, &points[i], oracle.best_s, 1.001 * oracle.best_s);
        search_below(&costs, &points[i], oracle.best_s, 1.2 * oracle.best_s);
        search_below(&costs, &points[i], oracle.best_s, 0.8 * oracle.best_s);
        search_briefly(&costs, &points[i], oracle.best_s, 2, SIZE_MAX, SIZE_MAX);
        search_briefly(&costs, &points[i], oracle.best_s, SIZE_MAX, 2, SIZE_MAX);
        search_briefly(&costs, &points[i], oracle.best_s, SIZE_MAX, SIZE_MAX, 1);
    }
    free(points);
    basis_finish(&basis);
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

SUITE(partition)
{
    TCase *formula = tcase_create("formula");
    tcase_add_loop_test(formula, no_plan_of_the_space_is_better_by_the_formula, 0,
                        test_share(INSTANCES));
    return suite_run("partition", formula, NULL);
}
