/* test_shared_cores.c - ranks on the same cores slow each other down, and ranks that a plan does
 * not have slow nobody down. */
#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/explain.h"
#include "tests/coordinator/planner/scene.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Links of a memory bus: what decides is computing. */
static const struct hardware_link link_fast = {1e-7, 1e-11};
static struct profile own;

/* Four devices of one host, on the cores that are given for each. */
static void scene_open(struct scene *scene, const char *const cores[DEVICES], const char *more)
{
    static const char *const names[] = {"a/0", "a/1", "a/2", "a/3"};
    scene_read(scene, 12, more);
    own = profile_analytic(1e9, 2e9, 0.5, link_fast, link_fast);
    for (int i = 0; i < DEVICES; i++)
        scene->devices[i] = (struct planner_device){.name = names[i],
                                                    .host = "a",
                                                    .memory_bytes = MEMORY,
                                                    .profile = &own,
                                                    .cores = cores[i]};
}

static void run(struct scene *scene)
{
    candidates_finish(&scene->result);
    int rc = planner_run(&scene->request, &scene->result, &scene->err);
    ck_assert_msg(rc == 0, "%s", scene->err.text);
}

static const char *const two_cores[DEVICES] = {"0", "1", "0", "1"};
static const char *const apart[DEVICES] = {"0", "1", "2", "3"};

static double slowness(const struct shared_cores *used, int device)
{
    return used->devices[device].profile->seconds_per_flop / own.seconds_per_flop;
}

START_TEST(a_device_is_as_many_times_slower_as_ranks_are_on_its_cores)
{
    static const struct {
        const char *cores[DEVICES];
        int count;
        double expected[DEVICES];
    } cases[] = {
        {{"0", "1", "0", "1"}, 1, {1}},
        {{"0", "1", "0", "1"}, 2, {1, 1}},
        {{"0", "1", "0", "1"}, 3, {2, 1, 2}},
        {{"0", "1", "0", "1"}, 4, {2, 2, 2, 2}},
        {{"0-3", "0-3", "0-1", "4-5"}, 4, {2.5, 2.5, 3, 1}},
        {{NULL, NULL, "0", NULL}, 4, {1, 1, 1, 1}},
    };
    struct scene scene;
    struct shared_cores used;
    scene_open(&scene, cases[_i].cores, "");
    shared_cores_init(&used, scene.devices, cases[_i].count);
    ck_assert_int_eq(used.count, cases[_i].count);
    for (int i = 0; i < used.count; i++) {
        ck_assert_double_eq_tol(slowness(&used, i), cases[_i].expected[i], 1e-12);
        for (int k = 0; k < i; k++) /* the planner tells like devices by that */
            ck_assert((used.devices[i].profile == used.devices[k].profile) ==
                      (cases[_i].expected[i] == cases[_i].expected[k]));
    }
    shared_cores_finish(&used);
    scene_close(&scene);
}
END_TEST

START_TEST(cores_of_another_host_are_others)
{
    struct scene scene;
    struct shared_cores used;
    scene_open(&scene, two_cores, "");
    scene.devices[2].host = scene.devices[3].host = "b";
    shared_cores_init(&used, scene.devices, DEVICES);
    for (int i = 0; i < DEVICES; i++)
        ck_assert_ptr_eq(used.devices[i].profile, &own);
    shared_cores_finish(&used);
    scene_close(&scene);
}
END_TEST

START_TEST(ranks_of_other_jobs_count)
{
    struct scene scene;
    struct shared_cores used;
    scene_open(&scene, two_cores, "");
    scene.devices[0].others = 1;
    shared_cores_init(&used, scene.devices, 2);
    ck_assert_double_eq_tol(slowness(&used, 0), 2, 1e-12);
    ck_assert_double_eq_tol(slowness(&used, 1), 1, 1e-12);
    shared_cores_finish(&used);
    scene_close(&scene);
}
END_TEST

/* Four ranks on two cores compute no faster than two, and exchange more. */
START_TEST(no_more_ranks_than_cores_are_chosen)
{
    struct scene scene;
    const char *search = _i == 0 ? "plan: {search: exact}\n" : "plan: {search: uniform}\n";
    scene_open(&scene, two_cores, search);
    run(&scene);
    double shared_s = scene.result.best->predicted.step_time_s;
    ck_assert_int_eq(plan_ranks(scene.result.best), 2);
    scene_close(&scene);

    scene_open(&scene, apart, search);
    run(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 4);
    ck_assert(scene.result.best->predicted.step_time_s < shared_s);
    scene_close(&scene);
}
END_TEST

/* Candidates on four ranks are there too, and each is priced by its own number of ranks. */
START_TEST(every_candidate_is_priced_by_the_ranks_that_it_has)
{
    struct scene scene;
    int seen[DEVICES + 1] = {0};
    scene_open(&scene, two_cores, "plan: {search: uniform}\n");
    run(&scene);
    for (size_t i = 0; i < scene.result.count; i++) {
        const struct plan *plan = scene.result.candidates[i].plan;
        struct planner_result alone;
        int rc = planner_given(&scene.request, plan_copy(plan), &alone, &scene.err);
        ck_assert_msg(rc == 0, "%s", scene.err.text);
        ck_assert_double_eq_tol(alone.best->predicted.step_time_s, plan->predicted.step_time_s,
                                1e-12);
        candidates_finish(&alone);
        seen[plan_ranks(plan)]++;
    }
    ck_assert_int_gt(seen[1], 0);
    ck_assert_int_gt(seen[2], 0);
    ck_assert_int_gt(seen[4], 0);
    scene_close(&scene);
}
END_TEST

/* The proof covers all numbers of devices: it is compared with what `exhaustive` finds in each. */
START_TEST(the_proof_holds_for_every_number_of_devices)
{
    struct scene scene;
    scene_open(&scene, two_cores, "plan: {search: exact, forbid: {roles: [hidden, context]}}\n");
    run(&scene);
    double bound_s = scene.result.best->predicted.lower_bound_s;
    double best_s = scene.result.best->predicted.step_time_s;
    ck_assert(bound_s > 0 && bound_s <= best_s);
    ck_assert_double_eq_tol(scene.result.best->predicted.gap, best_s / bound_s - 1, 1e-12);
    for (size_t i = 1; i < scene.result.count; i++)
        ck_assert(scene.result.candidates[i].plan->predicted.lower_bound_s == 0);
    free(scene.job->plan.search);
    scene.job->plan.search = xstrdup("uniform");
    run(&scene);
    for (size_t i = 0; i < scene.result.count; i++)
        ck_assert(!scene.result.candidates[i].fits ||
                  scene.result.candidates[i].plan->predicted.step_time_s >= bound_s);
    scene_close(&scene);
}
END_TEST

/* The least bounds of the ranges 1 to 2, 3 and 4, each searched by itself. */
START_TEST(the_proof_is_that_of_the_weakest_range)
{
    static const int ends[] = {2, 3, 4};
    struct scene scene;
    double least_s = INFINITY, formula_best_s = INFINITY, formula_least_s = INFINITY;
    scene_open(&scene, two_cores, "plan: {search: exact}\n");
    for (int i = 0; i < 3; i++) {
        scene.job->devices.min = i ? ends[i] : 1;
        scene.job->devices.max = ends[i];
        run(&scene);
        const struct plan *best = scene.result.best;
        double formula_s = INFINITY;
        for (size_t k = 0; k < scene.result.count; k++)
            formula_s = fmin(formula_s, scene.result.candidates[k].plan->predicted.formula_s);
        least_s = fmin(least_s, best->predicted.lower_bound_s);
        formula_best_s = fmin(formula_best_s, formula_s);
        formula_least_s = fmin(formula_least_s, formula_s / (1 + best->predicted.formula_gap));
    }
    scene.job->devices.min = 1;
    scene.job->devices.max = DEVICES;
    run(&scene);
    const struct plan *best = scene.result.best;
    ck_assert_double_eq_tol(best->predicted.lower_bound_s, least_s, 1e-15);
    ck_assert_double_eq_tol(best->predicted.formula_gap, formula_best_s / formula_least_s - 1,
                            1e-12);
    scene_close(&scene);
}
END_TEST

START_TEST(the_fewest_devices_are_found)
{
    struct scene scene;
    scene_open(&scene, two_cores, "plan: {objective: devices}\n");
    run(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 1);
    scene_close(&scene);
}
END_TEST

START_TEST(the_trade_off_covers_all_numbers_of_devices)
{
    struct scene scene;
    scene_open(&scene, two_cores, "plan: {objective: frontier}\n");
    run(&scene);
    const struct plan *best = scene.result.best;
    ck_assert_int_gt(best->predicted.alternative_count, 1);
    bool many = false; /* four ranks need the least memory of each */
    for (int i = 0; i < best->predicted.alternative_count; i++)
        many = many || best->predicted.alternatives[i].devices == 4;
    ck_assert(many);
    scene_close(&scene);
}
END_TEST

START_TEST(where_nothing_fits_the_message_is_that_of_the_most_devices)
{
    struct scene scene;
    scene_open(&scene, two_cores, "plan: {search: exact}\n");
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].memory_bytes = 1 << 14;
    ck_assert_int_eq(planner_run(&scene.request, &scene.result, &scene.err), -ENOSPC);
    ck_assert_msg(strstr(scene.err.text, "on 4 devices, needs "), "%s", scene.err.text);
    scene_close(&scene);
}
END_TEST

START_TEST(a_number_that_is_demanded_is_kept_to)
{
    struct scene scene;
    scene_open(&scene, two_cores, "devices: {min: 3, max: 3}\n");
    run(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 3);
    scene_close(&scene);

    scene_open(&scene, two_cores, "plan: {pin: {dp: 4, pp: 2}}\n");
    ck_assert_int_eq(planner_run(&scene.request, &scene.result, &scene.err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "plan.pin asks for 8 devices"));
    scene_close(&scene);
}
END_TEST

START_TEST(a_plan_is_explained_as_it_was_priced)
{
    struct scene scene;
    double compute[2];
    for (int both = 0; both < 2; both++) {
        struct explanation explanation;
        struct shared_cores used;
        scene_open(&scene, two_cores,
                   both ? "devices: {min: 4}\nplan: {pin: {dp: 4}}\n"
                        : "devices: {max: 2}\nplan: {pin: {dp: 2}}\n");
        run(&scene);
        ck_assert_int_eq(shared_cores_order(&scene.request, scene.result.best, &used, NULL), 0);
        struct planner_request ask = shared_cores_ask(&scene.request, &used);
        ck_assert_int_eq(explain_plan(&ask, scene.result.best, &explanation, &scene.err), 0);
        compute[both] = explanation_stage(&explanation, scene.result.best, 0).compute;
        explanation_finish(&explanation);
        shared_cores_finish(&used);
        scene_close(&scene);
    }
    /* half the samples on half a core; what a rank computes whatever its samples takes longer */
    ck_assert(compute[1] > 0.95 * compute[0]);
}
END_TEST

SUITE(shared_cores)
{
    TCase *tcase = tcase_create("shared cores");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_device_is_as_many_times_slower_as_ranks_are_on_its_cores, 0, 6);
    tcase_add_test(tcase, cores_of_another_host_are_others);
    tcase_add_test(tcase, ranks_of_other_jobs_count);
    tcase_add_loop_test(tcase, no_more_ranks_than_cores_are_chosen, 0, 2);
    tcase_add_test(tcase, every_candidate_is_priced_by_the_ranks_that_it_has);
    tcase_add_test(tcase, the_proof_holds_for_every_number_of_devices);
    tcase_add_test(tcase, the_proof_is_that_of_the_weakest_range);
    tcase_add_test(tcase, the_fewest_devices_are_found);
    tcase_add_test(tcase, the_trade_off_covers_all_numbers_of_devices);
    tcase_add_test(tcase, where_nothing_fits_the_message_is_that_of_the_most_devices);
    tcase_add_test(tcase, a_number_that_is_demanded_is_kept_to);
    tcase_add_test(tcase, a_plan_is_explained_as_it_was_priced);
    return suite_run("shared cores", tcase, NULL);
}
