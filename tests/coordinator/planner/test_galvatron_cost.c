/* test_galvatron_cost.c - Galvatron's formula against numbers worked out by hand. */
#include "tests/coordinator/planner/galvatron_figures.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
    struct galvatron_strategy strategy;
    int stages;
    int64_t samples;
    int slots;
    double ms, reduce_ms, mb;
};

static const struct row rows[] = {
    /* Forward 2, backward 4; 4 x 48 MB of states. */
    {{1, 1, false, 0, false}, 1, 1, 1, 6, 6, 192 + 10},
    /* 4 samples over 2 devices, 1.5 x 4 / 2 = 3 forward, 9 backward with recomputation; 6
     * collectives of 4 MB at 100 GB/s; 3 micro-batches of 4 x 2 MB. */
    {{2, 1, true, 0, true}, 1, 4, 3, 12 + 6 * 4 * .01, 12 + 6 * 4 * .01, 96 + 24},
    /* 48 MB are reduced in 0.48 beside 4 of the backward pass, both slower by 1.25: 0.6 pass, in
     * which 0.48 of it is done. */
    {{1, 2, false, 0, false}, 1, 2, 1, 6, 2 + .6 + 4 - .48, 192 + 10},
    {{1, 2, false, 2, false}, 1, 2, 1, 6, 2 + .6 + 4 - .48, 192 * (.75 * .503 + .25) + 10},
    /* 24 MB are gathered. */
    {{1, 2, false, 3, false}, 1, 2, 1, 6.24, 6.24 + .6 - .48, 192 * .503 + 10},
    /* 72 MB at 8 GB/s: after 5 ms, in which 32 MB went, the rest goes at its own pace. */
    {{1, 4, false, 0, false}, 1, 4, 1, 6, 2 + 5 + 40 / 8.0, 192 + 10},
    /* 24 MB at 50 GB/s, between ranks that are no neighbours, beside half of 2 ms. */
    {{2, 2, true, 0, false}, 1, 2, 1, 3.04, 1.04 + 1 + .6 + 1 - .48, 96 + 6},
    /* 2 x 2 MB at 20 GB/s for 2 layers. */
    {{1, 1, false, 0, false}, 2, 1, 2, 6.1, 6.1, 192 + 20},
    /* 36 MB at 8 GB/s beside all of 2 ms: d is more than 2. After 2.5 ms, in which 16 MB went, the
     * rest. What ZeRO-2 shards is the half that tensor leaves. */
    {{2, 4, true, 2, false}, 1, 4, 1, 3.04, 1.04 + 2.5 + 20 / 8.0, 96 * (.75 * .253 + .25) + 6},
};

/* 480 MB of parameters: reductions outlast what is beside them. */
static const struct row heavy_rows[] = {
    /* 480 MB at 100 GB/s beside 4 ms: 400 MB in 5 ms, then 80. */
    {{1, 2, false, 0, false}, 1, 2, 1, 6, 2 + 5 + .8, 1920 + 10},
    /* 240 MB at 50 GB/s: a half of the backward pass, 1 ms, is alone; 50 MB in 1.25 ms, then 190.
     */
    {{2, 2, true, 0, false}, 1, 2, 1, 3.04, 1.04 + 1 + 1.25 + 190 / 50.0, 960 + 6},
};

static void check_layer(const struct galvatron_problem *of, const struct row *row)
{
    struct galvatron_cost cost;
    int rc =
        galvatron_layer(of, &row->strategy, row->stages, row->samples, row->slots, &cost, NULL);
    ck_assert_int_eq(rc, 0);
    ck_assert_double_eq_tol(1000 * cost.seconds, row->ms, EXACT * row->ms);
    ck_assert_double_eq_tol(1000 * cost.reduce_s, row->reduce_ms, EXACT * row->reduce_ms);
    ck_assert_double_eq_tol(cost.bytes / MB, row->mb, EXACT * row->mb);
}

START_TEST(a_layer_is_as_worked_out)
{
    check_layer(&problem, &rows[_i]);
}
END_TEST

START_TEST(a_layer_whose_reductions_are_long_is_as_worked_out)
{
    struct galvatron_profile heavy = profile;
    struct galvatron_problem of = problem;
    heavy.parameter_mb = 480;
    of.profile = &heavy;
    check_layer(&of, &heavy_rows[_i]);
}
END_TEST

START_TEST(a_checkpoint_is_split_where_sequences_are)
{
    struct galvatron_profile split = profile;
    struct galvatron_problem of = problem;
    struct row row = rows[1];
    split.sequence = true;
    of.profile = &split;
    row.mb = 96 + 12;
    check_layer(&of, &row);
}
END_TEST

START_TEST(sixteen_bits_halve_messages)
{
    struct galvatron_profile half = profile;
    struct galvatron_problem mixed = problem;
    struct galvatron_cost cost;
    half.mixed = true;
    mixed.profile = &half;
    struct galvatron_strategy strategy = {1, 2, false, 2, false};
    ck_assert_int_eq(galvatron_layer(&mixed, &strategy, 1, 2, 1, &cost, NULL), 0);
    ck_assert_double_eq_tol(1000 * cost.reduce_s, 2 + .3 + 4 - .24, EXACT);
    ck_assert_double_eq_tol(cost.bytes / MB, 192 * (7 * .503 / 8 + 1 / 8.0) + 10, 1e-9);
    struct row row = rows[1]; /* six collectives of 2 MB */
    row.ms = row.reduce_ms = 12 + 6 * 2 * .01;
    check_layer(&mixed, &row);
}
END_TEST

START_TEST(the_ends_are_as_worked_out)
{
    struct galvatron_cost cost;
    /* 3 ms for a sample each on two devices; 25 MB at 100 GB/s, half of them. */
    ck_assert_int_eq(galvatron_ends(&problem, 2, 1, 0, 0, 1, 2, 1, &cost, NULL), 0);
    ck_assert_double_eq_tol(1000 * cost.seconds, 3.125, EXACT * 4);
    ck_assert_double_eq_tol(cost.bytes / MB, 1024 + 100 + 8, 1e-9);
    ck_assert_int_eq(galvatron_ends(&problem, 1, 1, 0, 0, 2, 1, 2, &cost, NULL), 0);
    ck_assert_double_eq_tol(1000 * cost.seconds, 1.5, EXACT * 2);
    ck_assert_double_eq_tol(cost.bytes / MB, 1024 + 50 + 8, 1e-9);
    ck_assert_int_eq(galvatron_ends(&problem, 1, 1, 0, 1, 3, 1, 2, &cost, NULL), 0);
    ck_assert_double_eq(cost.seconds, 0);
    ck_assert_double_eq(cost.bytes, 1024 * MB);
    /* 3 x 2 samples; 15 MB at 50 GB/s, half of them; a MB of one sample's at 50 GB/s. States of
     * zero 3, activations of 2 samples in 3 micro-batches. */
    ck_assert_int_eq(galvatron_ends(&problem, 4, 2, 3, 0, 1, 4, 3, &cost, NULL), 0);
    ck_assert_double_eq_tol(1000 * cost.seconds, 6 + .15 + .02, EXACT * 6);
    ck_assert_double_eq_tol(cost.bytes / MB, 1024 + 60 * .503 + 5 * 2 * 3, 1e-9);
}
END_TEST

START_TEST(a_pipeline_is_as_worked_out)
{
    /* A = 10 + 2 x 6 = 22, B = 2 + 4 + 2 x 4 = 14; the last reduction ends 3 after. */
    struct galvatron_cost rising[] = {{4, 4.5, 0}, {6, 13, 0}};
    ck_assert_double_eq_tol(galvatron_step(rising, 2, 3), 25, EXACT * 25);
    /* A = 10 + 2 x 4 = 18, B = 2 + 4 + 2 x 6 = 18; the first reduction ends 1 after. */
    struct galvatron_cost falling[] = {{6, 7, 0}, {4, 4.5, 0}};
    ck_assert_double_eq_tol(galvatron_step(falling, 2, 3), 19, EXACT * 19);
    /* The middle stage is counted once: A = 40 + 7. Who waits for it is not in the formula. */
    struct galvatron_cost uneven[] = {{1, 1, 0}, {38, 38, 0}, {1, 1, 0}};
    ck_assert_double_eq_tol(galvatron_step(uneven, 3, 8), 47, EXACT * 47);
    /* Fewer micro-batches than stages: A = 33 + 1, B = 10 + 20 + 0. */
    struct galvatron_cost few[] = {{30, 30, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}};
    ck_assert_double_eq_tol(galvatron_step(few, 4, 2), 34, EXACT * 34);
    /* A = 7 + 2 x 1, B = 2 + 4 + 2 x 6. */
    struct galvatron_cost first[] = {{6, 6, 0}, {1, 1, 0}};
    ck_assert_double_eq_tol(galvatron_step(first, 2, 3), 18, EXACT * 18);
    /* A = 37 + 5 x 1, B = 29/3 + 58/3 + 4 x 8. */
    struct galvatron_cost rest[] = {{8, 8, 0}, {28, 28, 0}, {1, 1, 0}};
    ck_assert_double_eq_tol(galvatron_step(rest, 3, 6), 61, EXACT * 61);
    /* What ends early saves nothing. */
    struct galvatron_cost early = {4, 3, 0};
    ck_assert_double_eq_tol(galvatron_step(&early, 1, 1), 4, EXACT * 4);
}
END_TEST

START_TEST(a_simulated_pipeline_is_as_worked_out)
{
    /* Forwards of 2 and 1, backwards of 4 and 2. The first stage: F 0-2, F 2-4, B 5-9, F 9-11,
     * B 11-15, B 15-19, and then its reduction. */
    struct galvatron_cost stages[] = {{.repeated_s = 6, .once_s = 1},
                                      {.repeated_s = 3, .once_s = .5}};
    struct plan *plan = plan_create(2, 4);
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = 3;
    ck_assert_double_eq_tol(galvatron_simulate(stages, plan), 20, EXACT * 20);
    plan_destroy(plan);
}
END_TEST

static void set_roles(struct plan *plan, int block, const char *role, int zero,
                      enum recompute recompute)
{
    plan->blocks[block].roles[0] = role_find(role);
    plan->blocks[block].zero = zero;
    plan->blocks[block].recompute = recompute;
}

/* Two stages of two devices, each a layer and an end, in every block another strategy. */
static struct plan *make_plan(void)
{
    struct plan *plan = plan_create(2, 4);
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = 2;
    plan->micro_batch_samples = 2;
    for (int i = 0; i < 2; i++) {
        plan->stages[i].block_first = 2 * i;
        plan->stages[i].block_count = 2;
        plan->stages[i].mesh = (struct mesh){.axes = 1, .size = {2}};
        plan->blocks[2 * i].stage = plan->blocks[2 * i + 1].stage = i;
    }
    set_roles(plan, 0, "batch", 0, RECOMPUTE_NONE);
    set_roles(plan, 1, "batch", 3, RECOMPUTE_NONE);
    set_roles(plan, 2, "tensor_seq", 0, RECOMPUTE_FULL);
    set_roles(plan, 3, "tensor", 0, RECOMPUTE_NONE);
    return plan;
}

START_TEST(a_plan_is_as_worked_out)
{
    struct galvatron_cost costs[2];
    double step_s;
    bool fits;
    struct plan *plan = make_plan();
    ck_assert_int_eq(galvatron_judge(&problem, plan, costs, &step_s, &fits, NULL), 0);
    /* The first layer: 2 + 4, 24 MB gathered at 100 GB/s, 2 x 2 MB passed on at 20 GB/s for two
     * layers; the embedding 1.5, and half of 50/4 MB at 100 GB/s. Two micro-batches in flight. */
    double first = 6 + .24 + .1 + 1.5 + .0625;
    ck_assert_double_eq_tol(1000 * costs[0].seconds, first, EXACT * first);
    /* Reductions beside the backward pass count once the ends are done: 48 MB at 100 GB/s. */
    double reduced = 6 + .24 + .1 + .12;
    ck_assert_double_eq_tol(1000 * costs[0].reduce_s, reduced, EXACT * first);
    ck_assert_double_eq_tol(1000 * costs[0].repeated_s, first - .0625, EXACT * first);
    ck_assert_double_eq_tol(1000 * costs[0].once_s, .12 + .0625, EXACT * first);
    ck_assert_double_eq_tol(costs[0].bytes / MB, 192 * .503 + 20 + 1024 + 50 + 8, 1e-9);
    /* The second: 2 + 6 with recomputation, 6 collectives of 2 MB at 100 GB/s, 2 x 4 MB passed on;
     * the head 3 for its two samples, a MB of one sample's at 100 GB/s, half of it. */
    double second = 8 + .12 + .2 + 3 + .005;
    ck_assert_double_eq_tol(1000 * costs[1].seconds, second, EXACT * second);
    ck_assert_double_eq_tol(1000 * costs[1].reduce_s, 8 + .12 + .2, EXACT * second);
    ck_assert_double_eq_tol(1000 * costs[1].repeated_s, second, EXACT * second);
    ck_assert_double_eq_tol(1000 * costs[1].once_s, 0, EXACT);
    ck_assert_double_eq_tol(costs[1].bytes / MB, 96 + 4 + 1024 + 35 + 4, 1e-9);
    /* A = first + 2 x second; the embedding takes longer than what is reduced beside it. */
    ck_assert_double_eq_tol(1000 * step_s, first + 2 * second, EXACT * 40);
    ck_assert(fits);
    plan_destroy(plan);
}
END_TEST

/* 20716 MB: a layer keeps 9600, besides 192 of states; the ends and the context 1132. */
START_TEST(a_plan_that_needs_what_is_left_unused_does_not_fit)
{
    struct galvatron_profile large = profile;
    struct galvatron_problem of = problem;
    double step_s;
    bool fits;
    struct plan *plan = plan_create(1, 4);
    large.activation_mb[0] = 9600;
    of.profile = &large;
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = 1;
    plan->micro_batch_samples = 1;
    plan->stages[0].block_count = 4;
    of.memory_bytes = 25ull << 30; /* 20480 MB of it are used */
    ck_assert_int_eq(galvatron_judge(&of, plan, NULL, &step_s, &fits, NULL), 0);
    ck_assert(!fits);
    of.memory_bytes = 26ull << 30;
    ck_assert_int_eq(galvatron_judge(&of, plan, NULL, &step_s, &fits, NULL), 0);
    ck_assert(fits);
    plan_destroy(plan);
}
END_TEST

START_TEST(a_fifth_of_large_memories_is_left)
{
    struct galvatron_problem small = {.memory_bytes = 20ull << 30},
                             large = {.memory_bytes = 40ull << 30};
    ck_assert_double_eq(galvatron_memory(&small), 20.0 * (1 << 30));
    ck_assert_double_eq_tol(galvatron_memory(&large), 32.0 * (1 << 30), 1);
}
END_TEST

static const struct {
    const char *role;
    int zero;
    enum recompute recompute;
    const char *words;
} foreign[] = {
    {"ulysses", 0, RECOMPUTE_NONE, "stage 0: Galvatron's formula does not know the role ulysses"},
    {"batch", 1, RECOMPUTE_NONE, "stage 0: Galvatron's formula does not know zero 1"},
    {"batch", 0, RECOMPUTE_SELECTIVE,
     "stage 0: Galvatron's formula does not know recomputation of parts of a block"},
};

START_TEST(what_their_formula_does_not_know_is_refused)
{
    struct error err = {0};
    double step_s;
    bool fits;
    struct plan *plan = plan_create(1, 4);
    plan->schedule = schedules[0];
    plan->micro_batches = 1;
    plan->micro_batch_samples = 4;
    plan->stages[0].block_count = 4;
    plan->stages[0].mesh = (struct mesh){.axes = 1, .size = {2}};
    for (int b = 0; b < 4; b++)
        plan->blocks[b].roles[0] = role_find("batch");
    plan->blocks[1].roles[0] = role_find(foreign[_i].role);
    plan->blocks[1].zero = foreign[_i].zero;
    plan->blocks[1].recompute = foreign[_i].recompute;
    ck_assert_int_eq(galvatron_judge(&problem, plan, NULL, &step_s, &fits, &err), -ENOTSUP);
    ck_assert_str_eq(err.text, foreign[_i].words);
    plan->blocks[1] = plan->blocks[2];
    plan->stages[0].mesh.size[0] = 16;
    ck_assert_int_eq(galvatron_judge(&problem, plan, NULL, &step_s, &fits, &err), -EINVAL);
    ck_assert_str_eq(err.text, "stage 0: the profile has no allreduce_size of 16");
    plan_destroy(plan);
}
END_TEST

SUITE(galvatron_cost)
{
    TCase *formula = tcase_create("formula"), *plans = tcase_create("plans");
    tcase_add_loop_test(formula, a_layer_is_as_worked_out, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_loop_test(formula, a_layer_whose_reductions_are_long_is_as_worked_out, 0,
                        (int)(sizeof heavy_rows / sizeof *heavy_rows));
    tcase_add_test(formula, a_checkpoint_is_split_where_sequences_are);
    tcase_add_test(formula, sixteen_bits_halve_messages);
    tcase_add_test(formula, the_ends_are_as_worked_out);
    tcase_add_test(formula, a_pipeline_is_as_worked_out);
    tcase_add_test(formula, a_simulated_pipeline_is_as_worked_out);
    tcase_add_test(formula, a_fifth_of_large_memories_is_left);
    tcase_add_test(plans, a_plan_is_as_worked_out);
    tcase_add_test(plans, a_plan_that_needs_what_is_left_unused_does_not_fit);
    tcase_add_loop_test(plans, what_their_formula_does_not_know_is_refused, 0,
                        (int)(sizeof foreign / sizeof *foreign));
    return suite_run("galvatron_cost", formula, plans, NULL);
}
