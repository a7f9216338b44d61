/* test_searches.c - under the formula no search is better than exact, whatever the problem. */
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/listing.h"
#include "coordinator/planner/searches/searches.h"
#include "tests/coordinator/planner/clusters.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INSTANCES 100
#define CLUSTERS 24

/* Of a hunt by the formula: its best, and what it says that no plan is shorter than; infinity:
 * nothing fits. */
struct hunted {
    double best_s, least_s;
};

static struct hunted exact_seconds(const struct planner_request *request,
                                   const struct hunt_limits *limits)
{
    struct hunt hunt;
    struct hunted hunted = {INFINITY, INFINITY};
    int devices = (int)request->job->devices.min;
    ck_assert_int_eq(hunt_init(&hunt, request, limits, NULL), 0);
    if (hunt_run(&hunt, devices, devices, NULL) == 0)
        hunted = (struct hunted){hunt.best_s, hunt.formula_least_s};
    hunt_finish(&hunt);
    return hunted;
}

/* Not all of uniform's plans are: the space has prime axes, and one collective over an axis of four
 * takes less latency than two over axes of two; and uniform never recomputes the ends. */
static bool is_in_space(const struct planner_request *request, const struct plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++)
        for (int axis = 0; axis < plan->stages[i].mesh.axes; axis++)
            if (plan->stages[i].mesh.size[axis] > 3)
                return false;
    return (request->job->plan.forbid.recompute >> plan->blocks[0].recompute & 1) == 0;
}

static void check_search(const struct planner_request *request, const struct search *search,
                         double least_s)
{
    struct planner_result result = {0};
    struct costs costs;
    double formula_s, bound_s;
    bool fits;
    ck_assert_int_eq(costs_init(&costs, request, NULL), 0);
    search->run(request, &result, NULL);
    for (size_t i = 0; i < result.count; i++) {
        const struct plan *plan = result.candidates[i].plan;
        ck_assert_int_eq(evaluate_plan(&costs, plan, &formula_s, &bound_s, &fits, NULL), 0);
        if (fits && is_in_space(request, plan))
            ck_assert_msg(formula_s >= least_s * (1 - 1e-9), "%s finds %.9g s, exact %.9g s",
                          search->name, formula_s, least_s);
        if (plan->predicted.formula_s > 0)
            ck_assert_double_eq_tol(plan->predicted.formula_s, formula_s, 1e-9 * formula_s);
    }
    costs_finish(&costs);
    candidates_finish(&result);
}

START_TEST(no_search_is_better_than_exact)
{
    struct drawn drawn;
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)_i);
    drawn.job->devices.min = drawn.job->devices.max = drawn.devices;
    double least_s = exact_seconds(&drawn.request, &hunt_limits_none).best_s;
    for (int i = 0; searches[i]; i++)
        if (strcmp(searches[i]->name, "exhaustive") != 0)
            check_search(&drawn.request, searches[i], least_s);
    drawn_finish(&drawn);
}
END_TEST

/* As the limits of a hunt in a hurry cut far longer models. */
START_TEST(what_was_cut_off_is_looked_at_again)
{
    struct drawn drawn;
    struct hunt_limits limits = hunt_limits_none;
    limits.labels = limits.pipeline_labels = 2;
    limits.choices = 4;
    limits.pairs = 1;
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)_i);
    drawn.job->devices.min = drawn.job->devices.max = drawn.devices;
    struct hunted all = exact_seconds(&drawn.request, &hunt_limits_none),
                  cut = exact_seconds(&drawn.request, &limits);
    if (isfinite(all.best_s)) {
        ck_assert_double_le(cut.least_s, all.best_s * (1 + 1e-9));
        ck_assert_double_ge(cut.least_s, cut.best_s * (1 - 1e-9));
    }
    ck_assert(isfinite(all.best_s) == isfinite(cut.best_s));
    drawn_finish(&drawn);
}
END_TEST

static void check_listed_once(const struct planner_request *request, const struct search *search)
{
    struct planner_result result = {0};
    search->run(request, &result, NULL);
    for (size_t i = 0; i < result.count; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(!plan_same(result.candidates[i].plan, result.candidates[k].plan),
                          "%s lists %s twice", search->name, result.candidates[i].plan->id);
    candidates_finish(&result);
}

/* Several roads lead to a plan: it is found for a point, as another plan's neighbour, with equal
 * blocks in another order, and with less memory. */
START_TEST(no_search_lists_a_plan_twice)
{
    struct cluster cluster;
    cluster_init(&cluster, test_seed() + 1000 * (uint64_t)_i, 3, 3);
    cluster.job->plan.objective = _i % 4 == 0 ? JOB_FRONTIER : JOB_THROUGHPUT;
    cluster.job->plan.pin.pp = _i % 2 ? 2 : 0;
    for (int i = 0; searches[i]; i++)
        if (strcmp(searches[i]->name, "exhaustive") != 0)
            check_listed_once(&cluster.request, searches[i]);
    cluster_finish(&cluster);
}
END_TEST

/* Even stages over powers of two, with roles and zero that its formula knows. */
START_TEST(galvatron_looks_at_its_own_space)
{
    struct drawn drawn;
    struct planner_result result = {0};
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)_i);
    search_find("galvatron")->run(&drawn.request, &result, NULL);
    for (size_t i = 0; i < result.count; i++) {
        const struct plan *plan = result.candidates[i].plan;
        int ranks = plan_ranks(plan), stages = plan->stage_count;
        ck_assert_int_eq(ranks & (ranks - 1), 0);
        ck_assert_int_eq(stages & (stages - 1), 0);
        for (int b = 0; b < plan->block_count; b++) {
            const struct plan_block *block = &plan->blocks[b];
            int even = (plan->block_count - 2) / stages;
            int stage = b == 0 ? 0 : (b - 1) / even < stages ? (b - 1) / even : stages - 1;
            ck_assert_int_eq(block->stage, stage);
            ck_assert(block->zero != 1 && block->recompute != RECOMPUTE_SELECTIVE);
            for (int axis = 0; axis < plan->stages[stage].mesh.axes; axis++)
                ck_assert_msg(strcmp(block->roles[axis]->name, "batch") == 0 ||
                                  strncmp(block->roles[axis]->name, "tensor", 6) == 0,
                              "%s", block->roles[axis]->name);
        }
    }
    candidates_finish(&result);
    drawn_finish(&drawn);
}
END_TEST

/* On hundreds of devices there are so many points that to list them takes longer than anybody
 * waits, and whoever asks next waits for that, too. */
START_TEST(a_search_that_is_stopped_lists_no_more_points)
{
    const atomic_bool stop = true;
    struct drawn drawn;
    struct hunt hunt;
    struct hunt_limits limits = hunt_limits_standard;
    limits.points = 1; /* so that only those of whole hosts are listed at first */
    for (uint64_t seed = test_seed();; seed++) {
        drawn_init(&drawn, seed);
        ck_assert_int_eq(hunt_init(&hunt, &drawn.request, &limits, NULL), 0);
        if (hunt_points(&hunt, 1, DRAWN_DEVICES_MAX, NULL) == 0 && hunt.step > 1)
            break;
        hunt_finish(&hunt);
        drawn_finish(&drawn);
    }
    size_t listed = hunt.point_count;
    int step = hunt.step;
    hunt.best_s = 1e9; /* all others may be better */
    drawn.request.stop = &stop;
    listing_rest(&hunt, DRAWN_DEVICES_MAX);
    ck_assert_uint_eq(hunt.point_count, listed);
    drawn.request.stop = NULL;
    hunt.step = step;
    listing_rest(&hunt, DRAWN_DEVICES_MAX);
    ck_assert_uint_gt(hunt.point_count, listed);
    hunt_finish(&hunt);
    drawn_finish(&drawn);
}
END_TEST

SUITE(searches)
{
    TCase *formula = tcase_create("formula"), *lists = tcase_create("lists");
    tcase_add_loop_test(formula, what_was_cut_off_is_looked_at_again, 0, test_share(INSTANCES));
    tcase_add_loop_test(formula, no_search_is_better_than_exact, 0, test_share(INSTANCES));
    tcase_add_loop_test(lists, no_search_lists_a_plan_twice, 0, test_share(CLUSTERS));
    tcase_add_loop_test(lists, galvatron_looks_at_its_own_space, 0, test_share(20));
    tcase_add_test(lists, a_search_that_is_stopped_lists_no_more_points);
    return suite_run("searches", formula, lists, NULL);
}
