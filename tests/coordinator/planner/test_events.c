/* test_events.c - pipelines of stages that take whatever they take: what their steps take at least.
 */
#include "coordinator/planner/costs/simulate.h"

#include "common/base/random.h"
#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/exact/instance.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define STAGES_MAX 9
#define MICRO_BATCHES_MAX 24
#define CASES 4000
#define INSTANCES 60
#define PLANS_MAX 400
#define ROUNDING (1 + 1e-9)

/* From 0 to `most`, more often little than much. */
static double draw_s(uint64_t seed, uint64_t *draws, double most)
{
    return most * pow((double)random_below(seed, 1, (*draws)++, 1000) / 999, 3);
}

static void draw_stages(uint64_t seed, uint64_t *draws, struct stage_cost *stages, int count)
{
    for (int i = 0; i < count; i++) {
        stages[i] = (struct stage_cost){.forward_s = draw_s(seed, draws, 1),
                                        .backward_s = draw_s(seed, draws, 2),
                                        .once_s = draw_s(seed, draws, 30)};
        stages[i].least_s = stages[i].forward_s + stages[i].backward_s;
    }
}

/* Whichever stage counts more than once. */
static void check_steady(const struct stage_cost *stages, int count, int m,
                         const struct schedule *schedule, double step_s)
{
    int ahead = stages_ahead(schedule, count, m);
    double sum_s = stages[0].once_s;
    for (int i = 0; i < count; i++)
        sum_s += stages[i].forward_s + stages[i].backward_s;
    ck_assert(ahead >= 0 && ahead < m);
    for (int i = 0; i < count; i++)
        ck_assert_double_ge(step_s,
                            sum_s + (m - 1 - ahead) * (stages[i].forward_s + stages[i].backward_s) +
                                ahead * stages[i].backward_s);
}

START_TEST(no_step_is_shorter_than_its_share_of_the_closed_form)
{
    for (int i = 0; i < test_share(CASES); i++) {
        struct stage_cost stages[STAGES_MAX];
        uint64_t seed = test_seed() + (uint64_t)i, draws = 0;
        int count = 1 + (int)random_below(seed, 0, 0, STAGES_MAX);
        int m = 1 + (int)random_below(seed, 0, 1, MICRO_BATCHES_MAX);
        draw_stages(seed, &draws, stages, count);
        double formula_s = evaluate_formula(stages, count, m), sum_s = 0;
        for (int j = 0; j < count; j++)
            sum_s += stages[j].forward_s + stages[j].backward_s;
        for (int j = 0; schedules[j]; j++) {
            double step_s = stages_seconds(stages, count, m, schedules[j], NULL) * ROUNDING;
            ck_assert_double_ge(step_s, formula_s * stages_share(schedules[j], count, m));
            ck_assert_double_ge(step_s, sum_s * evaluate_passes(count, m));
            ck_assert_double_ge(step_s, evaluate_bound(stages, count, m));
            check_steady(stages, count, m, schedules[j], step_s);
            ck_assert(count > 1 || step_s <= formula_s * ROUNDING * ROUNDING);
        }
    }
}
END_TEST

/* A point of an instance, and its plans so far. least_s: of those that fit; surveyed_s: of all. */
struct walk {
    struct costs *costs;
    double least_s, surveyed_s;
    int plans;
};

static bool compare(void *context, const struct plan *plan)
{
    struct walk *walk = context;
    const struct site *sites[DRAWN_DEVICES_MAX];
    struct stage_cost stages[DRAWN_DEVICES_MAX];
    evaluate_sites(walk->costs, plan, sites);
    bool fits = true;
    for (int i = 0; i < plan->stage_count; i++) {
        if (evaluate_stage(walk->costs, plan, sites, i, &stages[i], NULL) < 0)
            return true;
        fits = fits && stages[i].lacking == 0;
    }
    double step_s =
        stages_seconds(stages, plan->stage_count, plan->micro_batches, plan->schedule, NULL);
    ck_assert(!fits || step_s * ROUNDING >= walk->least_s);
    ck_assert_double_ge(step_s * ROUNDING, walk->surveyed_s);
    return ++walk->plans < PLANS_MAX;
}

/* A lower bound from the strategies of the blocks, if the best so far takes so long by the formula.
 */
static double survey(struct costs *costs, const struct space_point *point, bool relaxed,
                     double upper_s)
{
    struct instance instance;
    double bound_s = 0;
    if (instance_init(&instance, costs, point, relaxed, upper_s, NULL) == 0)
        bound_s = instance_events_bound(&instance);
    instance_finish(&instance);
    return bound_s;
}

/* Few roles and messages counted, or all roles. */
START_TEST(no_plan_that_fits_is_shorter_than_the_bound_of_its_point)
{
    struct drawn drawn;
    struct costs costs;
    struct basis basis;
    size_t count;
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)(_i / 2));
    ck_assert_int_eq(costs_init(&costs, &drawn.request, NULL), 0);
    basis_init(&basis, &costs);
    costs.narrow = _i % 2;
    basis_forget(&basis, costs.narrow);
    struct space_point *points = space_points(&drawn.request, drawn.devices, drawn.devices, &count);
    for (size_t i = 0; i < count; i++) {
        struct walk walk = {.costs = &costs, .least_s = INFINITY};
        if (bounds_legal(&basis, &points[i]))
            walk.least_s = bounds_by_events(&basis, &points[i]);
        double relaxed_s = survey(&costs, &points[i], true, INFINITY);
        double upper_s = relaxed_s * 2 * random_uniform(drawn.seed, 9, i);
        walk.surveyed_s = fmax(relaxed_s, fmax(survey(&costs, &points[i], true, upper_s),
                                               survey(&costs, &points[i], false, upper_s)));
        if (!bounds_fit(&basis, &points[i]))
            walk.least_s = INFINITY;
        space_walk(&costs, &points[i], compare, &walk);
    }
    free(points);
    basis_finish(&basis);
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

int main(void)
{
    TCase *stages = tcase_create("stages"), *points = tcase_create("points");
    tcase_add_test(stages, no_step_is_shorter_than_its_share_of_the_closed_form);
    tcase_add_loop_test(points, no_plan_that_fits_is_shorter_than_the_bound_of_its_point, 0,
                        2 * test_share(INSTANCES));
    tcase_set_timeout(points, 60);
    return suite_run("events", stages, points, NULL);
}
