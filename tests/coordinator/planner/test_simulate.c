/* test_simulate.c - a plan is judged by the programs of a few ranks just as by those of all; and
 * pipelines of stages that take whatever they take: what their steps take at least. */
#include "coordinator/planner/costs/simulate.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/exact/instance.h"
#include "coordinator/simulation/simulate.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define RANKS_MAX 12
#define SAMPLES 12
#define SEED_STRIDE 1000003

static struct graph *graph;
static struct profile profiles[2];
static struct planner_device machines[RANKS_MAX];
static struct job_config job;
static struct planner_request request;

static void open_request(int host_devices)
{
    static const char *const hosts[RANKS_MAX] = {"a", "b", "c", "d", "e", "f",
                                                 "g", "h", "i", "j", "k", "l"};
    struct job_model config = {
        .family = "gpt", .layers = 2, .hidden = 24, .heads = 12, .seq = 24, .vocab = 60};
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    struct hardware_link host = {2e-6, 2e-10}, network = {3e-5, 7e-9};
    profiles[0] = profile_analytic(1e9, 2e9, 0.5, host, network);
    profiles[1] = profile_analytic(7e8, 2e9, 0.5, host, network);
    profiles[0].network_cards = profiles[1].network_cards = 1;
    for (int i = 0; i < RANKS_MAX; i++)
        machines[i] =
            (struct planner_device){"device", hosts[i / host_devices], 1 << 30, &profiles[0], 0};
    request = (struct planner_request){graph, &job, machines, RANKS_MAX};
}

/* Of one stage, on several ranks. */
static struct plan *draw_plan(uint64_t seed)
{
    for (;; seed += SEED_STRIDE) {
        struct plan *plan = engine_plan_random(graph, seed, RANKS_MAX, SAMPLES);
        if (plan->stage_count == 1 && plan_ranks(plan) > 1)
            return plan;
        plan_destroy(plan);
    }
}

static void simulate_all(const struct plan *plan, struct simulation *out, uint64_t *bytes)
{
    struct pricing pricing = pricing_plain(&request);
    struct timing timing = {&pricing, pricing_seconds, pricing_slowdown};
    struct program *programs[RANKS_MAX];
    struct error err = {0};
    int ranks = plan_ranks(plan);
    *bytes = 0;
    for (int rank = 0; rank < ranks; rank++) {
        ck_assert_int_eq(lower(graph, plan, rank, &programs[rank], &err), 0);
        uint64_t own = program_bytes(programs[rank]);
        *bytes = own > *bytes ? own : *bytes;
    }
    int rc = simulate((const struct program *const *)programs, ranks, PROGRAM_TRAIN, &timing, NULL,
                      out, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    for (int rank = 0; rank < ranks; rank++)
        program_destroy(programs[rank]);
}

START_TEST(a_few_ranks_are_judged_as_all)
{
    uint64_t seed = test_seed() + (uint64_t)_i, bytes;
    struct planner_result result = {0};
    struct simulation all;
    struct error err = {0};
    open_request(1 + (int)random_below(seed, 9, 0, RANKS_MAX));
    struct plan *plan = draw_plan(seed);
    simulate_all(plan, &all, &bytes);
    job.train.global_batch = plan_global_batch(plan);
    int rc = simulate_programs(&request, plan_copy(plan), &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    const struct plan *judged = result.candidates[0].plan;
    ck_assert_msg(judged->predicted.step_time_s == all.step_s, "seed %lu: %.17g s, all %.17g",
                  (unsigned long)seed, judged->predicted.step_time_s, all.step_s);
    ck_assert_double_eq_tol(judged->predicted.bubble, all.exposed_s / all.step_s, 1e-9);
    ck_assert_uint_eq(judged->predicted.memory_bytes_max, bytes);
    candidates_finish(&result);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

static struct plan *plan_of(int axis_count, const int *axes)
{
    static const char *const along[] = {"batch", "tensor", "batch"};
    return engine_plan(graph, 1, axes, axis_count, along, 1, SAMPLES, "1f1b");
}

static bool keeps_pace(int host_devices, int axis_count, const int *axes)
{
    open_request(host_devices);
    struct plan *plan = plan_of(axis_count, axes);
    bool pace = like_ranks_keep_pace(&request, plan);
    plan_destroy(plan);
    graph_destroy(graph);
    return pace;
}

START_TEST(hosts_have_to_be_extents_of_the_first_axes)
{
    ck_assert(keeps_pace(1, 2, (const int[]){2, 3}));
    ck_assert(keeps_pace(2, 2, (const int[]){2, 3}));
    ck_assert(keeps_pace(4, 3, (const int[]){2, 2, 3}));
    ck_assert(keeps_pace(12, 3, (const int[]){2, 2, 3}));
    ck_assert(
        !keeps_pace(3, 2, (const int[]){2, 3})); /* one host has both of some, one of others */
    ck_assert(!keeps_pace(4, 2, (const int[]){2, 3})); /* the last host has two devices */
    ck_assert(!keeps_pace(2, 1, (const int[]){4}));
}
END_TEST

START_TEST(ranks_of_unlike_devices_or_stages_do_not_keep_pace)
{
    open_request(RANKS_MAX);
    struct plan *plan = plan_of(2, (const int[]){2, 3});
    ck_assert(like_ranks_keep_pace(&request, plan));
    machines[4].profile = &profiles[1];
    ck_assert(!like_ranks_keep_pace(&request, plan));
    machines[4].profile = &profiles[0];
    const int weights[] = {1, 1, 1, 2, 1, 1};
    plan->stages[0].mesh.weights = weights;
    ck_assert(!like_ranks_keep_pace(&request, plan));
    plan->stages[0].mesh.weights = NULL;
    plan_destroy(plan);
    plan = engine_plan(graph, 2, (const int[]){2}, 1, (const char *const[]){"batch"}, 2, SAMPLES,
                       "1f1b");
    ck_assert(!like_ranks_keep_pace(&request, plan));
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

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

SUITE(simulate_plans)
{
    TCase *judged = tcase_create("judged");
    tcase_set_timeout(judged, 60);
    tcase_add_loop_test(judged, a_few_ranks_are_judged_as_all, 0, test_share(120));
    tcase_add_test(judged, hosts_have_to_be_extents_of_the_first_axes);
    tcase_add_test(judged, ranks_of_unlike_devices_or_stages_do_not_keep_pace);
    TCase *stages = tcase_create("stages"), *points = tcase_create("points");
    tcase_add_test(stages, no_step_is_shorter_than_its_share_of_the_closed_form);
    tcase_add_loop_test(points, no_plan_that_fits_is_shorter_than_the_bound_of_its_point, 0,
                        2 * test_share(INSTANCES));
    tcase_set_timeout(points, 60);
    return suite_run("simulate", judged, stages, points, NULL);
}
