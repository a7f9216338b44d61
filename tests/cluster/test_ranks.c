/* test_ranks.c - ranks as processes that meet over Gloo train like one rank. */
#include "common/base/memory.h"
#include "tests/cluster/house.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 20
#define SAVED 10 /* the first checkpoint */
#define PAUSED_STEPS 30
#define LIMIT 1e-5 /* relative */

static const struct {
    int stages, axes[2], axis_count;
    const char *roles[2];
    const char *schedule;
} plans[] = {
    {1, {2, 2}, 2, {"tensor", "batch"}, "1f1b"},
    {2, {2}, 1, {"tensor"}, "gpipe"},
    {2, {2}, 1, {"batch"}, "1f1b"},
};

START_TEST(processes_over_gloo_train_like_one_rank)
{
    struct executor_job job;
    executor_job_make(&job, STEPS);
    struct executor_seen alone = house_alone(&job);
    struct house house = {.epoch = 1};
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan = engine_plan(graph, plans[_i].stages, plans[_i].axes, plans[_i].axis_count,
                                    plans[_i].roles, 2, 4, plans[_i].schedule);
    house_assign(&house, &job, plan, 0);
    house_serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_int_eq(house.seen.done, 4);
    ck_assert_int_eq(house.seen.steps, STEPS);
    for (int i = 0; i < STEPS; i++)
        ck_assert_double_le(fabs(house.seen.loss[i] - alone.loss[i]) / alone.loss[i], 1e-5);
    ck_assert_double_le(fabs(house.seen.evaluation - alone.evaluation) / alone.evaluation, 1e-5);
    ck_assert_uint_eq(house.seen.sample, 40);
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

static struct house train(const struct executor_job *job, const struct plan *plan, int steps,
                          bool to_pause)
{
    struct house house = {.epoch = 1, .to_pause = to_pause};
    house_assign(&house, job, plan, 0);
    house_serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_int_eq(house.seen.steps, steps);
    return house;
}

START_TEST(a_pause_is_behind_the_same_step_for_all_and_changes_no_bit)
{
    struct executor_job job;
    int steps = _i == 0 ? 8 * PAUSED_STEPS : PAUSED_STEPS; /* one rank is done the soonest */
    executor_job_make(&job, steps);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan = _i == 0 ? engine_plan_one(graph, 1, 8)
                                : engine_plan(graph, plans[_i - 1].stages, plans[_i - 1].axes,
                                              plans[_i - 1].axis_count, plans[_i - 1].roles, 2, 4,
                                              plans[_i - 1].schedule);
    struct house straight = train(&job, plan, steps, false);
    struct house paused = train(&job, plan, steps, true);
    ck_assert_int_eq(paused.asked, HOUSE_PAUSES);
    ck_assert_int_eq(paused.seen.done, paused.count);
    for (int i = 0; i < steps; i++)
        ck_assert_msg(paused.seen.loss[i] == straight.seen.loss[i], "step %d: %.17g is not %.17g",
                      i + 1, paused.seen.loss[i], straight.seen.loss[i]);
    ck_assert(paused.seen.evaluation == straight.seen.evaluation);
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

START_TEST(another_program_is_refused_in_words)
{
    struct executor_job job;
    struct house house = {.epoch = 1};
    executor_job_make(&job, STEPS);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan = engine_plan_one(graph, 1, 8);
    house_assign(&house, &job, plan, 1);
    house_serve(&house, -1, 0);
    house_finish(&house, false);
    ck_assert_int_eq(house.seen.stopped, 1);
    ck_assert_int_eq(house.seen.done, 0);
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "different versions"));
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

START_TEST(a_killed_rank_ends_the_others_in_words)
{
    struct executor_job job;
    struct house house = {.epoch = 1};
    executor_job_make(&job, 200);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan = engine_plan(graph, plans[_i].stages, plans[_i].axes, plans[_i].axis_count,
                                    plans[_i].roles, 2, 4, plans[_i].schedule);
    house_assign(&house, &job, plan, 0);
    house_serve(&house, 3, 5);
    house_finish(&house, false);
    ck_assert_int_eq(house.seen.stopped, 3);
    ck_assert_int_eq(house.seen.done, 0);
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "rank"));
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "step"));
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

/* From the checkpoint of its first epoch, or the first step. */
static struct executor_seen run_epoch(const struct executor_job *job, const struct plan *plan,
                                      int epoch, const char *folder, const char *start)
{
    struct house house = {.folder = folder,
                          .start = epoch > 1 ? start : NULL,
                          .start_step = epoch > 1 ? SAVED : 0,
                          .epoch = epoch};
    char text[128];
    house_assign(&house, job, plan, 0);
    house_serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_msg(house.seen.done == house.count, "%s: %s", plan_print(text, sizeof text, plan),
                  house.seen.reason);
    ck_assert_int_eq(house.seen.steps, STEPS);
    return house.seen;
}

/* The largest relative difference, of the losses behind this step and of the evaluation. */
static double difference(const struct executor_seen *a, const struct executor_seen *b, int first)
{
    double worst = fabs(a->evaluation - b->evaluation) / fabs(b->evaluation);
    for (int i = first; i < STEPS; i++)
        worst = fmax(worst, fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]));
    return worst;
}

START_TEST(random_plans_are_one_curve_from_whatever_checkpoint)
{
    struct executor_job job;
    uint64_t seed = test_seed() + 2 * (uint64_t)_i;
    executor_job_make(&job, STEPS);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan = engine_plan_random(graph, seed, HOUSE_RANKS_MAX, 8);
    struct plan *other = engine_plan_random(graph, seed + 1, HOUSE_RANKS_MAX, 8);
    char *folder = xasprintf("%s/saved", job.directory);
    char *start = xasprintf("%s/step-%d.epoch-1", folder, SAVED);
    struct executor_seen one = house_alone(&job);
    executor_job_append(&job, "checkpoint: {dir: /unused, every: 10}\n");
    struct executor_seen whole = run_epoch(&job, plan, 1, folder, start);
    double apart = difference(&whole, &one, 0);
    ck_assert_msg(apart <= LIMIT, "seed %lu: %g from one rank", (unsigned long)seed, apart);
    struct executor_seen again = run_epoch(&job, plan, 2, folder, start);
    apart = difference(&again, &whole, SAVED);
    ck_assert_msg(apart == 0, "seed %lu: under its own plan it differs by %g", (unsigned long)seed,
                  apart);
    struct executor_seen elsewhere = run_epoch(&job, other, 3, folder, start);
    apart = difference(&elsewhere, &whole, SAVED);
    ck_assert_msg(apart <= LIMIT, "seed %lu: under another plan it differs by %g",
                  (unsigned long)seed, apart);
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
    free(start);
    free(folder);
    plan_destroy(plan);
    plan_destroy(other);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("ranks");
    int count = (int)(sizeof plans / sizeof *plans);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, processes_over_gloo_train_like_one_rank, 0, count);
    tcase_add_loop_test(tcase, a_pause_is_behind_the_same_step_for_all_and_changes_no_bit, 0,
                        1 + count);
    tcase_add_test(tcase, another_program_is_refused_in_words);
    tcase_add_loop_test(tcase, a_killed_rank_ends_the_others_in_words, 0, count);
    tcase_add_loop_test(tcase, random_plans_are_one_curve_from_whatever_checkpoint, 0,
                        test_share(10));
    return suite_run("ranks", tcase, NULL);
}
