/* test_exact.c - the whole search against the whole space, simulated; its certificate; and that
 * lowering accepts all that the space offers. */
#include "common/program/lower.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/block_order.h"
#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/searches/exact.h"
#include "tests/coordinator/planner/clusters.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INSTANCES 60
#define ORDERED 600
#define PLANS_MAX 400.0 /* to be simulated one by one */
#define LOWERED 1000
/* Of the best plan's throughput: any plan of a hurried search, and nearly all of them. */
#define HURRIED_LEAST 0.75
#define HURRIED_CLOSE 0.95

struct tour {
    struct drawn *drawn;
    struct costs costs;
    struct planner_result all;
    int every, seen;
    struct point_bound bounds[2]; /* of the plan's point */
};

/* The plan is lowered and simulated, and needs no more than was added up for it. */
static bool lower_and_simulate(void *context, const struct plan *plan)
{
    struct tour *tour = context;
    struct error err = {0};
    double formula_s, bound_s;
    bool fits;
    if (tour->seen++ % tour->every != 0)
        return true;
    int rc = simulate_programs(&tour->drawn->request, plan_copy(plan), &tour->all, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    const struct candidate *candidate = &tour->all.candidates[tour->all.count - 1];
    ck_assert_int_eq(evaluate_plan(&tour->costs, plan, &formula_s, &bound_s, &fits, NULL), 0);
    if (fits)
        ck_assert(candidate->fits);
    double simulated_s = candidate->plan->predicted.step_time_s * (1 + 1e-9);
    ck_assert_double_le(bound_s, simulated_s);
    for (int i = 0; fits && i < 2; i++)
        ck_assert_msg(tour->bounds[i].formula_s <= formula_s * (1 + 1e-9) &&
                          tour->bounds[i].simulated_s <= simulated_s,
                      "bound %d is %.9g s and %.9g s simulated, the plan takes %.9g s and %.9g s",
                      i, tour->bounds[i].formula_s, tour->bounds[i].simulated_s, formula_s,
                      simulated_s);
    return true;
}

/* Plans beyond plans_max are passed over, one in so many. */
static double walk_all(struct tour *tour, uint64_t seed, struct drawn *drawn, double plans_max)
{
    struct basis basis;
    size_t count;
    double plans = 0;
    *tour = (struct tour){.drawn = drawn};
    drawn_init(drawn, seed);
    drawn->job->devices.min = drawn->job->devices.max = drawn->devices;
    ck_assert_int_eq(costs_init(&tour->costs, &drawn->request, NULL), 0);
    struct space_point *points =
        space_points(&drawn->request, drawn->devices, drawn->devices, &count);
    for (size_t i = 0; i < count; i++)
        plans += space_count(&tour->costs, &points[i]);
    tour->every = 1 + (int)(plans / plans_max);
    basis_init(&basis, &tour->costs);
    for (size_t i = 0; i < count && plans > 0; i++) {
        tour->bounds[0] = (struct point_bound){INFINITY, INFINITY};
        if (bounds_legal(&basis, &points[i]))
            tour->bounds[0] = bounds_point(&basis, &points[i]);
        tour->bounds[1] = bounds_unlike(&basis, &points[i]);
        space_walk(&tour->costs, &points[i], lower_and_simulate, tour);
    }
    basis_finish(&basis);
    free(points);
    costs_finish(&tour->costs);
    return plans;
}

START_TEST(lowering_accepts_what_the_space_offers)
{
    struct drawn drawn;
    struct tour tour;
    walk_all(&tour, test_seed() + 1000000 + (uint64_t)_i, &drawn, 20);
    candidates_finish(&tour.all);
    drawn_finish(&drawn);
}
END_TEST

/* An instance that is small enough, and the best of all its plans that fit; infinity: none does. */
static double draw_and_exhaust(uint64_t seed, struct drawn *drawn)
{
    struct tour tour;
    double plans = walk_all(&tour, seed, drawn, 1), best_s = INFINITY;
    for (int more = 1; plans == 0 || plans > PLANS_MAX; more++) {
        candidates_finish(&tour.all);
        drawn_finish(drawn);
        plans = walk_all(&tour, seed + (uint64_t)more, drawn, 1);
    }
    candidates_finish(&tour.all);
    drawn_finish(drawn);
    walk_all(&tour, drawn->seed, drawn, PLANS_MAX);
    for (size_t i = 0; i < tour.all.count; i++)
        if (tour.all.candidates[i].fits)
            best_s = fmin(best_s, tour.all.candidates[i].plan->predicted.step_time_s);
    candidates_finish(&tour.all);
    return best_s;
}

/* Of those that fit. */
static double fastest(const struct planner_result *result)
{
    double found_s = INFINITY;
    for (size_t i = 0; i < result->count; i++)
        if (result->candidates[i].fits)
            found_s = fmin(found_s, result->candidates[i].plan->predicted.step_time_s);
    return found_s;
}

START_TEST(no_plan_of_the_space_is_better_by_simulation)
{
    struct drawn drawn;
    struct planner_result result = {0};
    struct error err = {0};
    double best_s = draw_and_exhaust(test_seed() + 1000 * (uint64_t)_i, &drawn);
    int rc = exact_run(&drawn.request, &hunt_limits_none, &result, &err);
    bool certified = false;
    ck_assert_msg(rc == 0, "%s", err.text);
    double found_s = fastest(&result);
    ck_assert_double_le(found_s, best_s);
    for (size_t i = 0; i < result.count; i++) {
        const struct plan *plan = result.candidates[i].plan;
        if (plan->predicted.lower_bound_s == 0)
            continue;
        certified = true;
        ck_assert_double_eq(plan->predicted.step_time_s, found_s);
        ck_assert_double_eq(plan->predicted.gap, 0);
        ck_assert_double_eq(plan->predicted.formula_gap, 0);
    }
    ck_assert(certified == isfinite(found_s));
    candidates_finish(&result);
    drawn_finish(&drawn);
}
END_TEST

/* Seconds of the plan with its equal blocks in another order, by simulation; infinity: there is no
 * other, or it does not fit. */
static double reorder(struct drawn *drawn, const struct plan *plan, const int *place,
                      enum block_order order)
{
    struct planner_result result = {0};
    struct plan *other = block_order_sort(plan, place, order);
    if (!other)
        return INFINITY;
    ck_assert_ptr_null(block_order_sort(other, place, order));
    ck_assert_int_eq(simulate_programs(&drawn->request, other, &result, NULL), 0);
    double step_s = fastest(&result);
    candidates_finish(&result);
    return step_s;
}

/* As in a large space, whose plans are not all walked through. */
START_TEST(no_order_of_equal_blocks_is_better_by_simulation)
{
    struct drawn drawn;
    struct costs costs;
    struct planner_result result = {0};
    struct hunt_limits limits = hunt_limits_standard;
    limits.plans = 0;
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)_i);
    drawn.job->devices.min = drawn.job->devices.max = drawn.devices;
    ck_assert_int_eq(costs_init(&costs, &drawn.request, NULL), 0);
    if (exact_run(&drawn.request, &limits, &result, NULL) == 0) {
        const struct plan *best = NULL;
        for (size_t i = 0; i < result.count; i++)
            if (result.candidates[i].plan->predicted.lower_bound_s > 0)
                best = result.candidates[i].plan;
        for (int order = 0; best && order < BLOCK_ORDERS; order++)
            ck_assert_double_ge(reorder(&drawn, best, costs.model.place, (enum block_order)order),
                                best->predicted.step_time_s * (1 - 1e-9));
    }
    candidates_finish(&result);
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

/* The best step of an instance over that of the plan which is found in a hurry; 1: nothing fits. */
static double hurry(uint64_t seed)
{
    struct drawn drawn;
    struct planner_result result = {0};
    struct error err = {0};
    double best_s = draw_and_exhaust(seed, &drawn), ratio = 1;
    drawn.request.hurry = true;
    int rc = planner_run(&drawn.request, &result, &err);
    ck_assert_msg(rc == 0 || (rc == -ENOSPC && isinf(best_s)), "%s", err.text);
    if (rc == 0) {
        ratio = best_s / result.best->predicted.step_time_s;
        ck_assert_msg(result.best->predicted.lower_bound_s > 0, "what is chosen is certified");
    }
    candidates_finish(&result);
    drawn_finish(&drawn);
    return ratio;
}

/* As when a node was lost and executors wait: for those that are left. Of 1,800 instances 12
 * were further off than 5 %, the worst 12 %. */
START_TEST(plans_that_executors_wait_for_are_close_to_the_best)
{
    int far = 0, count = test_share(INSTANCES);
    for (int i = 0; i < count; i++) {
        double ratio = hurry(test_seed() + 1000 * (uint64_t)i);
        ck_assert_msg(ratio >= HURRIED_LEAST, "instance %d: %.3f of the best", i, ratio);
        far += ratio < HURRIED_CLOSE;
    }
    ck_assert_msg(far <= 1 + count / 20, "%d of %d are far from the best", far, count);
}
END_TEST

/* The fastest of them that fits. */
static const struct plan *fastest_plan(const struct planner_result *result)
{
    const struct plan *best = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct plan *plan = result->candidates[i].plan;
        if (result->candidates[i].fits &&
            (!best || plan->predicted.step_time_s < best->predicted.step_time_s))
            best = plan;
    }
    return best;
}

/* Of a pipeline over a slow link a fast stage hides what it receives behind computing: by the
 * formula it has too many blocks long before it has. */
START_TEST(no_block_is_better_off_on_the_next_stage)
{
    static const char text[] = "apiVersion: gimbal/v1\n"
                               "name: slow-link\n"
                               "model: {family: llama, layers: 8, hidden: 1536, heads: 12, "
                               "seq: 256, vocab: 8192}\n"
                               "data: {tokens: [corpus.bin]}\n"
                               "train: {steps: 3, global_batch: 32, lr: 0.001, dtype: bf16}\n";
    const struct hardware_link host = {2e-5, 1e-10}, network = {8e-5, 8e-9};
    struct profile slow = profile_analytic(1e13, 3e11, 0.5, host, network),
                   fast = profile_analytic(8e13, 2.4e12, 0.5, host, network);
    const struct planner_device devices[] = {{"a/0", "a", UINT64_C(8) << 30, &slow},
                                             {"a/1", "a", UINT64_C(8) << 30, &slow},
                                             {"b/0", "b", UINT64_C(8) << 30, &fast}};
    struct planner_result result = {0}, other = {0};
    struct job_config *job;
    struct graph *graph;
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job", &job, NULL), 0);
    ck_assert_int_eq(planner_graph(job, &graph, NULL), 0);
    struct planner_request request = {graph, job, devices, 3};
    ck_assert_int_eq(exact_run(&request, &hunt_limits_standard, &result, NULL), 0);
    const struct plan *best = fastest_plan(&result);
    ck_assert_int_eq(best->stage_count, 2);
    if (best->stages[0].block_count > 1) {
        struct plan *plan = plan_copy(best);
        int moved = --plan->stages[0].block_count;
        plan->stages[1].block_first--;
        plan->stages[1].block_count++;
        plan->blocks[moved] = plan->blocks[moved + 1];
        ck_assert_int_eq(simulate_programs(&request, plan, &other, NULL), 0);
        ck_assert_double_ge(fastest(&other), best->predicted.step_time_s);
        candidates_finish(&other);
    }
    candidates_finish(&result);
    graph_destroy(graph);
    job_config_destroy(job);
}
END_TEST

/* Clusters whose best plan takes some percent longer by the formula than the best by the formula.
 */
START_TEST(what_the_formula_finds_slow_may_be_fast)
{
    static const struct {
        uint64_t seed;
        int stages, micro_batches;
    } known[] = {{60, 1, 2}, {72, 2, 2}};
    struct cluster cluster;
    cluster_init(&cluster, known[_i].seed, 6, 6);
    double free_s = cluster_step(&cluster.request);
    cluster.job->plan.pin.pp = known[_i].stages;
    cluster.job->plan.pin.micro_batches = known[_i].micro_batches;
    ck_assert_double_le(free_s, cluster_step(&cluster.request));
    cluster_finish(&cluster);
}
END_TEST

SUITE(exact)
{
    TCase *space = tcase_create("space"), *simulation = tcase_create("simulation"),
          *hurried = tcase_create("hurried");
    tcase_add_loop_test(space, lowering_accepts_what_the_space_offers, 0, test_share(LOWERED / 10));
    tcase_add_loop_test(simulation, no_plan_of_the_space_is_better_by_simulation, 0,
                        test_share(INSTANCES));
    tcase_add_loop_test(simulation, no_order_of_equal_blocks_is_better_by_simulation, 0,
                        test_share(ORDERED));
    tcase_add_test(simulation, no_block_is_better_off_on_the_next_stage);
    tcase_add_loop_test(simulation, what_the_formula_finds_slow_may_be_fast, 0, 2);
    tcase_add_test(hurried, plans_that_executors_wait_for_are_close_to_the_best);
    tcase_set_timeout(hurried, 120);
    return suite_run("exact", space, simulation, hurried, NULL);
}
