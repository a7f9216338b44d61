/* test_plans.c - the loss curve is the same under every plan. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 20

static struct graph *graph;
static struct engine_result one; /* rank, 8 samples in one micro-batch */

static const struct job_model small = {
    .family = "gpt", .layers = 4, .hidden = 24, .heads = 4, .seq = 12, .vocab = 37, .ffn = 48};
static const struct engine_options options = {.steps = STEPS, .ignored = 0.2};

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 1, 8);
    int rc = engine_run(graph, plan, &options, &one, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    plan_destroy(plan);
}

static void teardown(void)
{
    engine_result_finish(&one);
    graph_destroy(graph);
}

/* Takes the plan. */
static void check_plan(struct plan *plan, const char *name)
{
    struct engine_result result;
    agreement_check(small.family, graph, plan, &options, &one, name, &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

#define DP "batch"
#define TP "tensor"
static const struct {
    const char *name;
    int stages, axes[2], axis_count;
    const char *roles[2];
    int micro_batches;
    const char *schedule;
} named[] = {
    {"one rank, 4 micro-batches", 1, {0}, 0, {0}, 4, "1f1b"},
    {"dp4", 1, {4}, 1, {DP}, 1, "1f1b"},
    {"tp4", 1, {4}, 1, {TP}, 1, "1f1b"},
    {"pp4 1f1b", 4, {0}, 0, {0}, 4, "1f1b"},
    {"pp4 gpipe", 4, {0}, 0, {0}, 4, "gpipe"},
    {"dp2 tp2", 1, {2, 2}, 2, {TP, DP}, 2, "1f1b"},
    {"pp2 dp2", 2, {2}, 1, {DP}, 4, "1f1b"},
    {"pp2 tp2", 2, {2}, 1, {TP}, 4, "gpipe"},
    {"dp4, three of them without a sample", 1, {4}, 1, {DP}, 8, "gpipe"},
    {"pp2 dp2 tp2", 2, {2, 2}, 2, {TP, DP}, 4, "1f1b"},
};

START_TEST(a_plan_gives_the_loss_of_one_rank)
{
    check_plan(engine_plan(graph, named[_i].stages, named[_i].axes, named[_i].axis_count,
                           named[_i].roles, named[_i].micro_batches, 8 / named[_i].micro_batches,
                           named[_i].schedule),
               named[_i].name);
}
END_TEST

/* An axis of size 1 divides nothing, whatever its role; plans that were written by hand have
 * them. */
START_TEST(an_axis_of_one_device_is_as_none)
{
    int axes[2][2] = {{1, 2}, {2, 1}};
    const char *role = roles[_i / 2]->name;
    struct plan *plan =
        engine_plan(graph, 2, axes[_i % 2], 2, (const char *[]){role, role}, 2, 4, "1f1b");
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].zero = b % 2;
    check_plan(plan, role);
}
END_TEST

START_TEST(a_random_plan_gives_the_loss_of_one_rank)
{
    char name[32];
    uint64_t seed = test_seed() + (uint64_t)_i;
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(engine_plan_random(graph, seed, 8, 8), name);
}
END_TEST

SUITE(plans)
{
    TCase *tcase = tcase_create("plans");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_plan_gives_the_loss_of_one_rank, 0,
                        (int)(sizeof named / sizeof *named));
    tcase_add_loop_test(tcase, an_axis_of_one_device_is_as_none, 0, 12);
    tcase_add_loop_test(tcase, a_random_plan_gives_the_loss_of_one_rank, 0, test_share(60));
    return suite_run("plans", tcase, NULL);
}
