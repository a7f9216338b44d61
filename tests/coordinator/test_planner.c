/* test_planner.c - the search finds what it should, keeps to what the job allows, and says why
 * where nothing does. */
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/searches/searches.h"
#include "tests/coordinator/planner/scene.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct hardware_link host_link = {2e-5, 2e-10}, network_link = {6e-5, 9e-10};
static struct profile profile;

/* Devices 0 and 1 are of one host, 2 and 3 of another. */
static void scene_open(struct scene *scene, const char *more)
{
    static const char *const names[] = {"a/0", "a/1", "b/0", "b/1"};
    scene_read(scene, 4, more);
    profile = profile_analytic(1e11, 2e10, 0.5, host_link, network_link);
    for (int i = 0; i < DEVICES; i++)
        scene->devices[i] = (struct planner_device){names[i], i < 2 ? "a" : "b", MEMORY, &profile};
}

static int scene_run(struct scene *scene)
{
    candidates_finish(&scene->result);
    return planner_run(&scene->request, &scene->result, &scene->err);
}

static void run_or_fail(struct scene *scene)
{
    int rc = scene_run(scene);
    ck_assert_msg(rc == 0, "%s", scene->err.text);
    ck_assert_ptr_eq(scene->result.best, scene->result.candidates[0].plan);
    ck_assert(scene->result.candidates[0].fits);
}

/* Devices that a division by the three takes, of one axis each. */
static int degree(const struct plan *plan, const char *role)
{
    return plan_degree(plan, plan->block_count / 2, (const char *[]){role, NULL});
}

static uint64_t largest_program(const struct scene *scene, const struct plan *plan)
{
    uint64_t most = 0;
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct program *program;
        ck_assert_int_eq(lower(scene->graph, plan, rank, &program, NULL), 0);
        most = program_bytes(program) > most ? program_bytes(program) : most;
        program_destroy(program);
    }
    return most;
}

START_TEST(the_best_is_the_fastest_that_was_looked_at)
{
    struct scene scene;
    scene_open(&scene, "plan: {search: uniform}\n");
    run_or_fail(&scene);
    double best = scene.result.best->predicted.step_time_s;
    int seen[DEVICES + 1] = {0};
    for (size_t i = 0; i < scene.result.count; i++) {
        const struct plan *plan = scene.result.candidates[i].plan;
        ck_assert(plan->predicted.step_time_s >= best);
        ck_assert(plan->predicted.step_time_s > 0 && plan->predicted.tokens_per_s > 0);
        ck_assert(plan->predicted.bubble >= 0 && plan->predicted.bubble < 1);
        ck_assert_double_eq_tol(plan->predicted.tokens_per_s * plan->predicted.step_time_s, 4 * 16,
                                1e-9);
        ck_assert_uint_eq(plan->predicted.memory_bytes_max, largest_program(&scene, plan));
        ck_assert_int_eq(plan->predicted.candidates, (int)scene.result.count);
        ck_assert_int_eq((int)plan_global_batch(plan), 4);
        ck_assert_str_eq(plan_device(plan, 0), "a/0");
        seen[plan_ranks(plan)]++;
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(scene.result.candidates[j].plan->id, plan->id);
    }
    for (int devices = 1; devices <= DEVICES; devices++)
        ck_assert_msg(devices == 3 || seen[devices] > 0, "nothing on %d devices", devices);
    scene_close(&scene);
}
END_TEST

START_TEST(fast_links_are_worth_more_devices)
{
    struct scene scene;
    scene_open(&scene, "plan: {pin: {micro_batches: 1}, forbid: {zero: [1, 2, 3]}}\n");
    profile = profile_analytic(1e9, 1e9, 1, (struct hardware_link){0, 1e-15},
                               (struct hardware_link){0, 1e-15});
    run_or_fail(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), DEVICES);
    profile = profile_analytic(1e9, 1e9, 1, (struct hardware_link){100, 1},
                               (struct hardware_link){100, 1});
    run_or_fail(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 1);
    scene_close(&scene);
}
END_TEST

START_TEST(pins_are_kept)
{
    struct scene scene;
    scene_open(&scene, "plan: {pin: {pp: 2, dp: 2, micro_batches: 2}, schedule: gpipe}\n");
    run_or_fail(&scene);
    for (size_t i = 0; i < scene.result.count; i++) {
        const struct plan *plan = scene.result.candidates[i].plan;
        ck_assert_int_eq(plan->stage_count, 2);
        ck_assert_int_eq(degree(plan, "batch"), 2);
        ck_assert_int_eq(degree(plan, "tensor"), 1);
        ck_assert_int_eq(plan->micro_batches, 2);
        ck_assert_str_eq(plan->schedule->name, "gpipe");
    }
    scene_close(&scene);
}
END_TEST

START_TEST(what_is_forbidden_is_not_tried)
{
    struct scene scene;
    scene_open(&scene, "plan: {forbid: {roles: [tensor], zero: [1, 2, 3]}}\n");
    run_or_fail(&scene);
    for (size_t i = 0; i < scene.result.count; i++) {
        ck_assert_int_eq(degree(scene.result.candidates[i].plan, "tensor"), 1);
        ck_assert_int_eq(scene.result.candidates[i].plan->blocks[1].zero, 0);
    }
    scene_close(&scene);
    scene_open(&scene, "plan: {forbid: {roles: [batch, tensor]}}\n");
    run_or_fail(&scene);
    for (size_t i = 0; i < scene.result.count; i++)
        ck_assert_int_eq(degree(scene.result.candidates[i].plan, "tensor") *
                             degree(scene.result.candidates[i].plan, "batch"),
                         1);
    scene_close(&scene);
}
END_TEST

START_TEST(the_number_of_devices_is_kept)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 2, max: 3}\n");
    run_or_fail(&scene);
    for (size_t i = 0; i < scene.result.count; i++) {
        ck_assert_int_ge(plan_ranks(scene.result.candidates[i].plan), 2);
        ck_assert_int_le(plan_ranks(scene.result.candidates[i].plan), 3);
    }
    scene_close(&scene);
}
END_TEST

START_TEST(an_objective_of_devices_takes_the_fewest_that_fit)
{
    struct scene scene;
    scene_open(&scene, "plan: {objective: devices, search: uniform}\n");
    run_or_fail(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 1);
    uint64_t one = scene.result.best->predicted.memory_bytes_max;
    for (size_t i = 0; i < scene.result.count; i++) {
        const struct plan *plan = scene.result.candidates[i].plan;
        if (plan_ranks(plan) == 1 && plan->predicted.memory_bytes_max < one)
            one = plan->predicted.memory_bytes_max;
    }
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].memory_bytes = one - 1;
    run_or_fail(&scene);
    ck_assert_int_eq(plan_ranks(scene.result.best), 2);
    scene_close(&scene);
}
END_TEST

START_TEST(memory_of_each_device_is_kept)
{
    struct scene scene;
    scene_open(&scene, "");
    run_or_fail(&scene);
    uint64_t need = scene.result.best->predicted.memory_bytes_max;
    scene.devices[0].memory_bytes = need - 1; /* every plan uses the first device */
    run_or_fail(&scene);
    ck_assert_uint_ne(scene.result.best->predicted.memory_bytes_max, need);
    for (size_t i = 0; i < scene.result.count; i++)
        if (scene.result.candidates[i].plan->predicted.memory_bytes_max <= need - 1)
            ck_assert(scene.result.candidates[i].fits);
    scene_close(&scene);
}
END_TEST

/* By every search: they sum up parts, and a plan is priced by its programs. */
START_TEST(what_libraries_take_counts_as_reserved)
{
    struct scene scene;
    scene_open(&scene, _i ? "plan: {search: uniform, pin: {pp: 1}}\n" : "plan: {pin: {pp: 1}}\n");
    run_or_fail(&scene);
    uint64_t need = scene.result.best->predicted.memory_bytes_max, libraries = 3 << 20;
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].library_bytes = libraries;
    run_or_fail(&scene);
    ck_assert_uint_eq(scene.result.best->predicted.memory_bytes_max, need + libraries);
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].memory_bytes = libraries + 1000;
    ck_assert_int_eq(scene_run(&scene), -ENOSPC);
    ck_assert_msg(strstr(scene.err.text, "on a/0, 3.0 MiB of it for its libraries, where ") != NULL,
                  "%s", scene.err.text);
    scene_close(&scene);
}
END_TEST

/* Whether a plan is searched or was given. */
START_TEST(where_a_rank_ran_out_of_memory_the_device_is_named)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 4}\n");
    ck_assert_int_eq(scene_run(&scene), 0);
    struct plan *given = plan_copy(scene.result.best);
    for (int i = 2; i < DEVICES; i++) {
        scene.devices[i].memory_bytes = 1000;
        scene.devices[i].ran_out = true;
    }
    static const char limit[] =
        " on b/0, where 1000 B may be used (a rank of the job ran out of memory there)";
    ck_assert_int_eq(scene_run(&scene), -ENOSPC);
    ck_assert_msg(strstr(scene.err.text, limit) != NULL, "%s", scene.err.text);
    ck_assert_msg(strstr(scene.err.text, "it would run with devices of at least ") != NULL, "%s",
                  scene.err.text);
    candidates_finish(&scene.result);
    ck_assert_int_eq(planner_given(&scene.request, given, &scene.result, &scene.err), -ENOSPC);
    ck_assert_msg(strstr(scene.err.text, "the given plan does not fit: it needs ") != NULL, "%s",
                  scene.err.text);
    ck_assert_msg(strstr(scene.err.text, limit) != NULL, "%s", scene.err.text);
    scene_close(&scene);
}
END_TEST

/* Its device, not the first that is smaller than what another rank of its stage takes. */
START_TEST(the_rank_that_does_not_fit_is_named)
{
    struct scene scene;
    char words[CANDIDATES_TIGHT_SIZE];
    scene_open(&scene, "devices: {min: 4}\n");
    run_or_fail(&scene);
    struct candidate candidate = {.plan = scene.result.best, .tight_rank = 2, .tight_bytes = 3000};
    candidate.plan->stages[0].memory_bytes = 3000;
    scene.devices[0].memory_bytes = 2500;
    scene.devices[2].memory_bytes = 2800;
    candidates_print_tight(&scene.request, &candidate, words, sizeof words);
    ck_assert_str_eq(words, "2.9 KiB on b/0, where 2.7 KiB may be used");
    candidate.tight_rank = -1;
    candidates_print_tight(&scene.request, &candidate, words, sizeof words);
    ck_assert_str_eq(words, "2.9 KiB on a/0, where 2.4 KiB may be used");
    scene_close(&scene);
}
END_TEST

START_TEST(where_nothing_fits_need_and_limit_are_named)
{
    struct scene scene;
    scene_open(&scene, "plan: {memory: 1 MiB}\n");
    scene.job->plan.memory = 1000;
    ck_assert_int_eq(scene_run(&scene), -ENOSPC);
    ck_assert_ptr_null(scene.result.best);
    ck_assert_uint_gt(scene.result.count, 0);
    unsigned long long least = scene.result.candidates[0].plan->predicted.memory_bytes_max;
    for (size_t i = 0; i < scene.result.count; i++)
        ck_assert(scene.result.candidates[i].plan->predicted.memory_bytes_max >= least);
    char *words = xasprintf("plan.memory of at least %llu bytes", least);
    ck_assert_msg(strstr(scene.err.text, words) != NULL, "%s", scene.err.text);
    ck_assert_msg(strstr(scene.err.text, "on a/0, where 1000 B may be used (plan.memory)") != NULL,
                  "%s", scene.err.text);
    free(words);

    /* A limit that would do is believed. */
    scene.job->plan.memory = least;
    run_or_fail(&scene);

    /* What the devices do not have cannot be allowed. */
    scene.job->plan.memory = 0;
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].memory_bytes = 1000;
    ck_assert_int_eq(scene_run(&scene), -ENOSPC);
    ck_assert_msg(strstr(scene.err.text, "plan.memory") == NULL, "%s", scene.err.text);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "it would run with devices of at least "));
    scene_close(&scene);
}
END_TEST

START_TEST(exact_is_the_default)
{
    struct scene scene;
    scene_open(&scene, "");
    ck_assert_str_eq(search_find(scene.job->plan.search)->name, "exact");
    scene_close(&scene);
}
END_TEST

static const struct {
    const char *more, *words;
} refused[] = {
    {"devices: {min: 5}\n", "devices.min is 5, and there are 4 devices"},
    {"plan: {search: galactic}\n", "plan.search 'galactic' is unknown; known: exact, uniform, bmw, "
                                   "tensoropt, autoddl, galvatron, exhaustive"},
    {"plan: {schedule: zigzag}\n", "plan.schedule 'zigzag' is unknown; known: 1f1b, gpipe"},
    {"plan: {forbid: {roles: [tensr]}}\n",
     "plan.forbid.roles 'tensr' is unknown; known: batch, tensor, "},
    {"plan: {pin: {dp: 2, tp: 4}}\n", "plan.pin asks for 8 devices (dp 2, tp 4), and there are 4"},
    {"plan: {pin: {tp: 3}}\n",
     "plan.pin: tp 3 does not divide heads 4 and ffn 128 of the model; 1, 2, 4 do"},
};

START_TEST(what_cannot_be_is_refused_in_words)
{
    struct scene scene;
    scene_open(&scene, refused[_i].more);
    ck_assert_int_eq(scene_run(&scene), -EINVAL);
    ck_assert_msg(strstr(scene.err.text, refused[_i].words) != NULL, "%s", scene.err.text);
    scene_close(&scene);
}
END_TEST

START_TEST(a_plan_that_was_priced_before_is_priced_anew)
{
    struct scene scene;
    struct planner_result again = {0};
    scene_open(&scene, "");
    run_or_fail(&scene);
    const struct plan *best = scene.result.best;
    struct plan *old = plan_copy(best);
    old->predicted.memory_bytes_max = old->stages[0].memory_bytes = 1ull << 50;
    old->stages[0].time_s = 1e9;
    ck_assert_int_eq(simulate_programs(&scene.request, old, &again, &scene.err), 0);
    old = again.candidates[0].plan;
    ck_assert_uint_eq(old->predicted.memory_bytes_max, best->predicted.memory_bytes_max);
    ck_assert_uint_eq(old->stages[0].memory_bytes, best->stages[0].memory_bytes);
    ck_assert_double_eq(old->stages[0].time_s, best->stages[0].time_s);
    ck_assert_double_eq(old->predicted.step_time_s, best->predicted.step_time_s);
    candidates_finish(&again);

    scene.request.device_count = plan_ranks(best) - 1;
    ck_assert_int_eq(simulate_programs(&scene.request, plan_copy(best), &again, &scene.err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "devices, there are"));
    scene.request.device_count = DEVICES;
    scene.job->train.global_batch = 8;
    ck_assert_int_eq(simulate_programs(&scene.request, plan_copy(best), &again, &scene.err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "a global batch of 4, the job's is 8"));
    scene_close(&scene);
}
END_TEST

START_TEST(a_graph_computes_in_what_its_job_says)
{
    struct scene scene;
    scene_open(&scene, "");
    ck_assert_int_eq(scene.graph->element_bytes, 4);
    graph_destroy(scene.graph);
    scene.job->train.dtype = ELEMENT_BF16;
    ck_assert_int_eq(planner_graph(scene.job, &scene.graph, NULL), 0);
    scene.request.graph = scene.graph;
    ck_assert_int_eq(scene.graph->element_bytes, 2);
    ck_assert_int_eq(scene_run(&scene), 0);
    ck_assert_int_eq(planner_runs(scene.job, scene.graph, NULL), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(a_search_tells_how_far_it_is)
{
    static const char *const wanted[] = {"plan: {search: uniform}\n", "plan: {search: exact}\n"};
    struct planner_progress progress = {0};
    struct scene scene;
    scene_open(&scene, wanted[_i]);
    scene.request.progress = &progress;
    run_or_fail(&scene);
    ck_assert_uint_gt(atomic_load(&progress.work), 0);
    ck_assert_double_gt(atomic_load(&progress.best_s), 0);
    ck_assert_double_lt(atomic_load(&progress.best_s), INFINITY);
    scene_close(&scene);
}
END_TEST

START_TEST(a_search_that_is_stopped_says_so)
{
    const atomic_bool stop = true;
    for (int i = 0; searches[i]; i++) {
        struct scene scene;
        char *more = xasprintf("devices: {max: 1}\nplan: {search: %s}\n", searches[i]->name);
        scene_open(&scene, more);
        scene.request.stop = &stop;
        ck_assert_int_eq(scene_run(&scene), -ECANCELED);
        ck_assert_ptr_nonnull(strstr(scene.err.text, "stopped"));
        ck_assert_ptr_null(scene.result.best);
        scene.request.stop = NULL;
        run_or_fail(&scene);
        scene_close(&scene);
        free(more);
    }
}
END_TEST

START_TEST(devices_that_take_no_time_are_not_believed)
{
    struct scene scene;
    scene_open(&scene, "devices: {max: 1}\n");
    profile = (struct profile){0};
    ck_assert_int_eq(scene_run(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "a step takes 0 seconds"));
    scene_close(&scene);
}
END_TEST

SUITE(planner)
{
    TCase *search = tcase_create("search"), *words = tcase_create("words");
    tcase_set_timeout(search, 60);
    tcase_set_timeout(words, 60);
    tcase_add_test(search, the_best_is_the_fastest_that_was_looked_at);
    tcase_add_test(search, fast_links_are_worth_more_devices);
    tcase_add_test(search, pins_are_kept);
    tcase_add_test(search, what_is_forbidden_is_not_tried);
    tcase_add_test(search, the_number_of_devices_is_kept);
    tcase_add_test(search, an_objective_of_devices_takes_the_fewest_that_fit);
    tcase_add_test(search, memory_of_each_device_is_kept);
    tcase_add_test(search, a_plan_that_was_priced_before_is_priced_anew);
    tcase_add_test(search, exact_is_the_default);
    tcase_add_loop_test(words, what_libraries_take_counts_as_reserved, 0, 2);
    tcase_add_test(words, where_a_rank_ran_out_of_memory_the_device_is_named);
    tcase_add_test(words, the_rank_that_does_not_fit_is_named);
    tcase_add_test(words, where_nothing_fits_need_and_limit_are_named);
    tcase_add_loop_test(words, what_cannot_be_is_refused_in_words, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(words, a_graph_computes_in_what_its_job_says);
    tcase_add_loop_test(words, a_search_tells_how_far_it_is, 0, 2);
    tcase_add_test(words, a_search_that_is_stopped_says_so);
    tcase_add_test(words, devices_that_take_no_time_are_not_believed);
    return suite_run("planner", search, words, NULL);
}
