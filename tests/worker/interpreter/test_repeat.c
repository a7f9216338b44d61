/* test_repeat.c - the same plan gives the same bits every time, uneven plans give the curve of
 * one rank, an evaluation sees the loss that training saw, and the gradients of the whole model
 * are derivatives of its loss. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/derivative.h"

#include "tests/support/counts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 5

static struct graph *graph;

static const struct job_model small = {
    .family = "gpt", .layers = 4, .hidden = 24, .heads = 4, .seq = 12, .vocab = 37, .ffn = 48};

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
}

static void teardown(void)
{
    graph_destroy(graph);
}

static void run(const struct plan *plan, const struct engine_options *options,
                struct engine_result *result, const char *name)
{
    struct error err = {""};
    int rc = engine_run(graph, plan, options, result, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.text);
}

/* ---- not finite ---- */

/* An infinite weight anywhere makes the loss no number, on every rank; then no rank may update
 * anything, moments included: else the ranks, or the next good step, would differ. */
START_TEST(a_step_that_is_not_finite_updates_nothing)
{
    int tensor = 0;
    while (graph->tensors[tensor].kind != TENSOR_WEIGHT)
        tensor++;
    size_t count = (size_t)count_tensor(graph, tensor);
    float *infinite = xcalloc(count, sizeof *infinite);
    const float **offsets = xcalloc(graph->tensor_count, sizeof *offsets);
    for (size_t i = 0; i < count; i++)
        infinite[i] = INFINITY;
    offsets[tensor] = infinite;
    struct engine_options none = {.steps = 0, .offsets = offsets};
    struct engine_options some = {.steps = 3, .offsets = offsets};
    struct engine_result before, after;
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, 8, 8);
    run(plan, &none, &before, "no steps");
    run(plan, &some, &after, "three steps");
    for (int i = 0; i < some.steps; i++)
        ck_assert(!isfinite(after.loss[i]));
    for (size_t t = 0; t < graph->tensor_count; t++) {
        size_t bytes =
            before.parameters[t] ? (size_t)count_tensor(graph, (int)t) * sizeof(float) : 0;
        ck_assert_msg(bytes == 0 || memcmp(before.parameters[t], after.parameters[t], bytes) == 0,
                      "%s was updated", graph->tensors[t].name);
    }
    engine_result_finish(&before);
    engine_result_finish(&after);
    plan_destroy(plan);
    free(offsets);
    free(infinite);
}
END_TEST

/* ---- repeated ---- */

START_TEST(a_plan_run_twice_gives_the_same_bits)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    char name[64];
    for (int d = 0; devices[d]; d++) {
        struct engine_options options = {.device = devices[d], .steps = STEPS, .ignored = 0.2};
        struct plan *plan = engine_plan_random(graph, seed, 8, 8);
        struct engine_result first, second;
        snprintf(name, sizeof name, "seed %lu on %s", (unsigned long)seed, devices[d]->name);
        if (devices[d]->probe(NULL) == 0) {
            run(plan, &options, &first, name);
            run(plan, &options, &second, name);
            const char *what = engine_differs(&first, &second, graph, STEPS);
            ck_assert_msg(!what, "%s: %s differs", name, what);
            engine_result_finish(&first);
            engine_result_finish(&second);
        }
        plan_destroy(plan);
    }
}
END_TEST

static void check_queues(const struct collectives *collectives, uint64_t seed)
{
    char name[64];
    struct plan *plan = engine_plan_random(graph, seed, 8, 8);
    struct engine_options options = {.collectives = collectives, .steps = STEPS, .ignored = 0.2};
    struct engine_result one, two;
    snprintf(name, sizeof name, "seed %lu over %s", (unsigned long)seed, collectives->name);
    plan->overlap = false;
    run(plan, &options, &one, name);
    plan->overlap = true;
    run(plan, &options, &two, name);
    const char *what = engine_differs(&one, &two, graph, STEPS);
    ck_assert_msg(!what, "%s: %s differs", name, what);
    engine_result_finish(&one);
    engine_result_finish(&two);
    plan_destroy(plan);
}

START_TEST(one_queue_and_two_give_the_same_bits)
{
    check_queues(&collectives_local, test_seed() + (uint64_t)_i);
}
END_TEST

START_TEST(over_every_library_too)
{
    for (int c = 0; collective_libraries[c]; c++)
        check_queues(collective_libraries[c], test_seed() + 100 + (uint64_t)_i);
}
END_TEST

/* ---- uneven ---- */

static void set_weights(struct plan *plan, int stage, const int *weights)
{
    struct plan_stage *s = &plan->stages[stage];
    size_t count = (size_t)mesh_count(&s->mesh);
    s->weights = xcalloc(count, sizeof *s->weights);
    memcpy(s->weights, weights, count * sizeof *weights);
    s->mesh.weights = s->weights;
}

static void set_stage(struct plan *plan, int stage, int block_first, int block_count, int axis,
                      const char *role)
{
    struct plan_stage *s = &plan->stages[stage];
    s->block_first = block_first;
    s->block_count = block_count;
    s->mesh.axes = axis > 1;
    s->mesh.size[0] = axis;
    for (int b = block_first; b < block_first + block_count; b++) {
        plan->blocks[b].stage = stage;
        plan->blocks[b].roles[0] = role_find(role);
    }
}

/* Six blocks: one, three and two; one device, three and two. */
static struct plan *uneven_stages(void)
{
    struct plan *plan = engine_plan(graph, 3, NULL, 0, NULL, 4, 2, "1f1b");
    set_stage(plan, 0, 0, 1, 1, "batch");
    set_stage(plan, 1, 1, 3, 3, "context");
    set_stage(plan, 2, 4, 2, 2, "tensor");
    return plan;
}

static struct plan *uneven_shares(void)
{
    struct plan *plan =
        engine_plan(graph, 1, (int[]){4}, 1, (const char *[]){"batch"}, 1, 8, "1f1b");
    set_weights(plan, 0, (int[]){1, 4, 2, 1});
    return plan;
}

/* Two samples over four ranks: two have none. */
static struct plan *empty_share(void)
{
    struct plan *plan =
        engine_plan(graph, 1, (int[]){4}, 1, (const char *[]){"batch"}, 4, 2, "gpipe");
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].zero = 1;
    return plan;
}

static struct plan *uneven_all(void)
{
    struct plan *plan =
        engine_plan(graph, 2, (int[]){3, 2}, 2, (const char *[]){"batch", "tensor"}, 2, 4, "1f1b");
    set_stage(plan, 0, 0, 2, 3, "batch");
    set_weights(plan, 0, (int[]){3, 1, 1});
    plan->stages[1].block_first = 2;
    plan->stages[1].block_count = 4;
    for (int b = 2; b < 6; b++) {
        plan->blocks[b].stage = 1;
        plan->blocks[b].zero = b % 2;
    }
    set_weights(plan, 1, (int[]){2, 1, 1, 2, 1, 3});
    return plan;
}

static const struct {
    const char *name;
    struct plan *(*make)(void);
} uneven[] = {
    {"stages of 1, 3 and 2 blocks on 1, 3 and 2 devices", uneven_stages},
    {"shares of 1, 4, 2 and 1 samples", uneven_shares},
    {"two samples over four devices, sharded state", empty_share},
    {"uneven stages with uneven shares", uneven_all},
};

START_TEST(an_uneven_plan_gives_the_loss_of_one_rank)
{
    struct engine_options options = {.steps = STEPS, .ignored = 0.2};
    struct plan *plan = uneven[_i].make(), *plain = engine_plan_one(graph, 1, 8);
    struct engine_result result, one;
    run(plain, &options, &one, "one rank");
    agreement_check("gpt", graph, plan, &options, &one, uneven[_i].name, &result);
    engine_result_finish(&result);
    engine_result_finish(&one);
    plan_destroy(plan);
    plan_destroy(plain);
}
END_TEST

/* ---- evaluation ---- */

START_TEST(an_evaluation_before_any_update_is_the_first_loss)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct engine_options train = {.steps = 1, .ignored = 0.2};
    struct engine_options evaluate = {.steps = 0, .ignored = 0.2, .same_samples = true};
    struct plan *plan = engine_plan_random(graph, seed, 8, 8);
    struct engine_result trained, evaluated;
    run(plan, &train, &trained, "train");
    run(plan, &evaluate, &evaluated, "evaluate");
    ck_assert_msg(trained.loss[0] == evaluated.evaluation, "seed %lu: %.9g trained, %.9g evaluated",
                  (unsigned long)seed, trained.loss[0], evaluated.evaluation);
    engine_result_finish(&trained);
    engine_result_finish(&evaluated);
    plan_destroy(plan);
}
END_TEST

/* ---- derivatives ---- */

START_TEST(gradients_of_one_rank_are_derivatives_of_the_loss)
{
    struct plan *plan = engine_plan_one(graph, 2, 4);
    derivative_check(graph, plan, &device_plain, test_seed() + (uint64_t)_i, "one rank");
    plan_destroy(plan);
}
END_TEST

/* Embedding and head on different stages and in different roles: the tied weight travels. */
START_TEST(gradients_of_a_mixed_plan_are_derivatives_of_the_loss)
{
    struct plan *plan = uneven_stages();
    derivative_check(graph, plan, &device_plain, test_seed() + (uint64_t)_i, "mixed plan");
    plan_destroy(plan);
}
END_TEST

SUITE(repeat)
{
    TCase *runs = tcase_create("runs");
    tcase_add_unchecked_fixture(runs, setup, teardown);
    tcase_set_timeout(runs, 60);
    tcase_add_loop_test(runs, a_plan_run_twice_gives_the_same_bits, 0, test_share(10));
    tcase_add_loop_test(runs, one_queue_and_two_give_the_same_bits, 0, test_share(20));
    tcase_add_loop_test(runs, over_every_library_too, 0, test_share(2));
    tcase_add_loop_test(runs, a_step_that_is_not_finite_updates_nothing, 0, test_share(5));
    tcase_add_loop_test(runs, an_uneven_plan_gives_the_loss_of_one_rank, 0,
                        (int)(sizeof uneven / sizeof *uneven));
    tcase_add_loop_test(runs, an_evaluation_before_any_update_is_the_first_loss, 0, test_share(10));
    TCase *derivatives = tcase_create("derivatives");
    tcase_add_unchecked_fixture(derivatives, setup, teardown);
    tcase_set_timeout(derivatives, 60);
    tcase_add_loop_test(derivatives, gradients_of_one_rank_are_derivatives_of_the_loss, 0,
                        test_share(1));
    tcase_add_loop_test(derivatives, gradients_of_a_mixed_plan_are_derivatives_of_the_loss, 0,
                        test_share(1));
    return suite_run("repeat", runs, derivatives, NULL);
}
