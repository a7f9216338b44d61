/* test_galvatron_cost.c - Galvatron's formula against numbers worked out by hand, and that no plan
 * of its space with an even split is better than the one that is found for it. */
#include "common/base/random.h"
#include "common/models/model.h"
#include "coordinator/planner/galvatron_space.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0
#define EXACT 1e-12
#define SPACES 40
#define PLANS 300 /* of a space */

/* A sample's activations between layers are 1 MB: 16 x 16384 words. */
static const struct galvatron_profile profile = {
    .layer = {.items = {{1, 2.0}, {4, 1.5}}, .count = 2},
    .other = {.items = {{0, 1.0}}, .count = 1},
    .parameter_mb = 48,
    .activation_mb = {10, 6, 4},
    .checkpoint_mb = 2,
    .alone = {{100, 60, 40}, {8, 5, 3}},
    .first = {{50, 30, 20}, {4, 3, 2}},
    .last = {{60, 35, 20}, {3, 2, 1}},
    .allreduce_gb_s = {{0, 50}, {0, 100, 8}},
    .p2p_gb_s = {0, 20, 10},
    .overlap = 1.25,
};
static const struct galvatron_problem problem = {
    .profile = &profile, .hidden = 16384, .seq = 16, .layers = 2, .memory_bytes = 1ull << 40};

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
};

START_TEST(a_layer_is_as_worked_out)
{
    const struct row *row = &rows[_i];
    struct galvatron_cost cost;
    int rc = galvatron_layer(&problem, &row->strategy, row->stages, row->samples, row->slots, &cost,
                             NULL);
    ck_assert_int_eq(rc, 0);
    ck_assert_double_eq_tol(1000 * cost.seconds, row->ms, EXACT * row->ms);
    ck_assert_double_eq_tol(1000 * cost.reduce_s, row->reduce_ms, EXACT * row->reduce_ms);
    ck_assert_double_eq_tol(cost.bytes / MB, row->mb, EXACT * row->mb);
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

/* A model that divides by 4, on two stages or one. */
static struct graph *make_graph(int layers)
{
    struct graph *graph;
    struct model_config config = {
        .family = "gpt", .layers = layers, .hidden = 48, .heads = 4, .seq = 16, .vocab = 64};
    ck_assert_int_eq(model_build(&config, &graph, NULL), 0);
    return graph;
}

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

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 3, draw->next++, (uint64_t)bound);
}

static void draw_block(struct draw *draw, struct plan *plan, int block, bool end)
{
    static const int zeros[] = {0, 2, 3};
    struct plan_block *of = &plan->blocks[block];
    int axes = plan->stages[of->stage].mesh.axes, tensor = below(draw, axes + 1);
    bool first = end || below(draw, 2);
    for (int axis = 0; axis < axes; axis++)
        of->roles[axis] =
            role_find((first ? axis < tensor : axis >= axes - tensor) ? "tensor" : "batch");
    of->zero = end || tensor == axes ? 0 : zeros[below(draw, 3)];
    of->recompute = !end && below(draw, 2) ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

/* On four devices, of `layers` layers in even runs. */
static struct plan *draw_plan(struct draw *draw, int layers, int batch)
{
    int most = layers < 4 ? 2 : 3, log = below(draw, most), stages = 1 << log;
    struct plan *plan = plan_create(stages, layers + 2);
    for (int b = 0, stage = 0; b < layers + 2; b++) {
        while (stage < stages - 1 && b > (stage + 1) * (layers / stages))
            stage++;
        plan->blocks[b].stage = stage;
        if (plan->stages[stage].block_count++ == 0)
            plan->stages[stage].block_first = b;
    }
    for (int i = 0; i < stages; i++)
        for (int axes = 0; axes < 2 - log; axes++)
            plan->stages[i].mesh.size[plan->stages[i].mesh.axes++] = 2;
    do
        plan->micro_batches = 1 + below(draw, batch);
    while (batch % plan->micro_batches);
    plan->micro_batch_samples = batch / plan->micro_batches;
    plan->schedule = schedule_find("1f1b");
    for (int b = 0; b <= layers; b++)
        draw_block(draw, plan, b, b == 0);
    /* The head is divided as the embedding is. */
    memcpy(plan->blocks[layers + 1].roles, plan->blocks[0].roles, sizeof plan->blocks[0].roles);
    return plan;
}

START_TEST(no_plan_of_their_space_is_better)
{
    struct draw draw = {test_seed() + (uint64_t)_i, 0};
    struct galvatron_problem drawn = problem;
    struct error err = {0};
    int layers = 2 + below(&draw, 4), batch = 4 * (1 + below(&draw, 2));
    double step_s = INFINITY;
    bool fits;
    struct graph *graph = make_graph(layers);
    drawn.layers = layers;
    drawn.memory_bytes = (uint64_t)((1150 + below(&draw, 900)) * MB);
    struct plan *best = galvatron_best(&drawn, graph, 4, batch, &err);
    if (best) {
        ck_assert_int_eq(plan_check(best, graph, NULL), 0);
        ck_assert_int_eq(galvatron_judge(&drawn, best, NULL, &step_s, &fits, NULL), 0);
        ck_assert(fits);
        ck_assert_double_eq_tol(step_s, best->predicted.formula_s, EXACT * step_s);
    }
    for (int i = 0; i < PLANS; i++) {
        struct plan *plan = draw_plan(&draw, layers, batch);
        double other_s;
        if (plan_check(plan, graph, NULL) == 0) {
            int rc = galvatron_judge(&drawn, plan, NULL, &other_s, &fits, &err);
            ck_assert_msg(rc == 0, "%s", err.text);
            if (fits)
                ck_assert_double_le(step_s, other_s * (1 + EXACT));
        }
        plan_destroy(plan);
    }
    plan_destroy(best);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_number_of_devices_that_they_do_not_divide_is_refused)
{
    struct error err = {0};
    struct graph *graph = make_graph(2);
    ck_assert_ptr_null(galvatron_best(&problem, graph, 3, 4, &err));
    ck_assert_str_eq(err.text, "Galvatron divides powers of two, and there are 3 devices");
    graph_destroy(graph);
}
END_TEST

int main(void)
{
    TCase *formula = tcase_create("formula"), *space = tcase_create("space");
    tcase_add_loop_test(formula, a_layer_is_as_worked_out, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(formula, sixteen_bits_halve_messages);
    tcase_add_test(formula, the_ends_are_as_worked_out);
    tcase_add_test(formula, a_pipeline_is_as_worked_out);
    tcase_add_test(formula, a_fifth_of_large_memories_is_left);
    tcase_add_loop_test(formula, what_their_formula_does_not_know_is_refused, 0,
                        (int)(sizeof foreign / sizeof *foreign));
    tcase_add_loop_test(space, no_plan_of_their_space_is_better, 0, test_share(SPACES));
    tcase_add_test(space, a_number_of_devices_that_they_do_not_divide_is_refused);
    return suite_run("galvatron_cost", formula, space, NULL);
}
