/* test_tangled.c - a block that is no layer of any model family, made to be hard for backward.
 *
 *     z = norm(input)      x = norm(z)      unused = x + z
 *     a = fc2(gelu(fc1(norm(x))))           b = fc2(gelu(fc1(x))), with the same weights
 *     output = x + z + a + b
 *
 * The gradient that passes through the sums is one buffer under four names: x adds to it, in the
 * same placement (from its norm) or only in another (from fc1; the second block has no norm
 * before a), while z still reads it. Weights have two users in one block. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/kinds.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/derivative.h"

#include <stdio.h>

#define STEPS 4

static struct graph *graph;
static struct engine_result one;
static const struct engine_options options = {.steps = STEPS, .ignored = 0.2};
static const struct initializer zero = {0, 0}, unit = {1, 0}, wide = {0, 0.2f};

static int node(const char *operation, const char *output, int first, int second, int third)
{
    const struct node *kind = kind_find(operation);
    return graph_node_along(graph, kind->name, kind->operation, kind->dims, output,
                            (int[]){first, second, third});
}

static int norm(const char *name, int input)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    int w = graph_weight(graph, weight, "h", unit, false);
    return node("norm", name, input, w, graph_weight(graph, bias, "h", zero, false));
}

struct network {
    int w1, b1, w2, b2;
};

static int apply(const struct network *network, const char *name, int input)
{
    char text[3][64];
    snprintf(text[0], sizeof text[0], "%s.wide", name);
    snprintf(text[1], sizeof text[1], "%s.active", name);
    snprintf(text[2], sizeof text[2], "%s.back", name);
    int x = node("fc1", text[0], input, network->w1, network->b1);
    return node("fc2", text[2], node("gelu", text[1], x, 0, 0), network->w2, network->b2);
}

static int tangle(int index, int input)
{
    char name[32];
    snprintf(name, sizeof name, "tangle.%d", index);
    graph_block(graph, name, 1);
    int z = norm("norm1", input), x = norm("norm2", z);
    struct network network = {graph_weight(graph, "fc1.weight", "hf", wide, true),
                              graph_weight(graph, "fc1.bias", "f", zero, false),
                              graph_weight(graph, "fc2.weight", "fh", wide, true),
                              graph_weight(graph, "fc2.bias", "h", zero, false)};
    node("add", "unused", x, z, 0);
    int a = apply(&network, "a", index ? x : norm("norm3", x)), b = apply(&network, "b", x);
    int sum = node("add", "sum1", x, z, 0);
    sum = node("add", "sum2", sum, a, 0);
    return node("add", "sum3", sum, b, 0);
}

static void setup(void)
{
    struct error err = {""};
    graph = graph_create();
    static const struct {
        char dim;
        int64_t size;
    } sizes[] = {{'s', 12}, {'h', 24}, {'n', 4}, {'d', 6}, {'f', 36}, {'v', 36}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        sizes_set(&graph->sizes, sizes[i].dim, sizes[i].size);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);
    graph_block(graph, "embed", 0);
    int table = graph_weight(graph, "tokens.weight", "vh", wide, true);
    int x = node("embed", "tokens", tokens, table, 0);
    for (int i = 0; i < 2; i++)
        x = tangle(i, x);
    graph_block(graph, "head", 2);
    x = node("logits", "logits", norm("norm", x), table, 0);
    node("loss", "loss", x, targets, 0);

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
    agreement_check("the tangle", graph, plan, &options, &one, name, &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(gradients_are_derivatives_of_the_loss)
{
    struct plan *plan = engine_plan_one(graph, 1, 8);
    derivative_check(graph, plan, &device_plain, test_seed() + (uint64_t)_i, "one rank");
    plan_destroy(plan);
}
END_TEST

START_TEST(every_vector_of_roles_gives_the_loss_of_one_rank)
{
    const char *names[] = {roles[_i % 6]->name, roles[_i / 6]->name};
    char name[64];
    snprintf(name, sizeof name, "%s, %s", names[0], names[1]);
    check_plan(engine_plan(graph, 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"), name);
}
END_TEST

START_TEST(a_random_plan_gives_the_loss_of_one_rank)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(engine_plan_random(graph, seed, 8, 8), name);
}
END_TEST

SUITE(tangled)
{
    TCase *tcase = tcase_create("tangled");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, gradients_are_derivatives_of_the_loss, 0, test_share(1));
    tcase_add_loop_test(tcase, every_vector_of_roles_gives_the_loss_of_one_rank, 0, 36);
    tcase_add_loop_test(tcase, a_random_plan_gives_the_loss_of_one_rank, 0, test_share(12));
    return suite_run("tangled", tcase, NULL);
}
