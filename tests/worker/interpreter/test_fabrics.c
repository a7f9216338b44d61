/* test_fabrics.c - the same training on devices, whichever way their data goes: among threads,
 * through the host's memory over Gloo with the same bits, and over NCCL as close as its sums are,
 * which are rounded on their way. In f32 and in bf16. Device and NCCL are emulated, ranks are
 * threads. */
#include "tests/support/suite.h"
#include "tests/worker/interpreter/small_families.h"

#include <stdio.h>

#define STEPS 3

static const enum element elements[] = {ELEMENT_F32, ELEMENT_BF16};
static const char *const names[] = {"f32", "bf16"};
/* Of losses, and of gradients: three sums rounded to 8 bits, and what follows from them. */
static const double limits[] = {1e-5, 1e-2}, gradient_limits[] = {1e-5, 5e-2};

static struct graph *graph_of(int model, enum element element)
{
    struct graph *graph;
    struct error err = {""};
    ck_assert_msg(model_build(&families[model], element, &graph, &err) == 0, "%s", err.text);
    return graph;
}

static void train(const struct graph *graph, const struct plan *plan,
                  const struct collectives *collectives, bool staged, struct engine_result *out)
{
    const struct engine_options options = {.device = &device_cuda,
                                           .collectives = collectives,
                                           .staged = staged,
                                           .steps = STEPS,
                                           .ignored = 0.2,
                                           .poison = true};
    struct error err = {""};
    int rc = engine_run(graph, plan, &options, out, &err);
    ck_assert_msg(rc == 0, "%s%s: %s", collectives->name, staged ? ", staged" : "", err.text);
}

/* Takes the plan. */
static void check_plan(int element, int model, struct plan *plan, const char *words)
{
    struct graph *graph = graph_of(model, elements[element]);
    const struct collectives *gloo = collectives_find("gloo");
    struct engine_result threads, staged, nccl;
    const char *worst = "", *name = names[element];
    train(graph, plan, &collectives_local, false, &threads);
    if (gloo) {
        train(graph, plan, gloo, true, &staged);
        const char *differs = engine_differs(&staged, &threads, graph, STEPS);
        ck_assert_msg(!differs, "%s under %s: over Gloo %s differs", name, words, differs);
        engine_result_finish(&staged);
    }
    train(graph, plan, &collectives_nccl, false, &nccl);
    double loss = engine_loss_difference(&nccl, &threads, STEPS);
    double gradient = engine_gradient_difference(&nccl, &threads, graph, &worst);
    ck_assert_msg(loss <= limits[element], "%s under %s: loss differs by %g", name, words, loss);
    ck_assert_msg(gradient <= gradient_limits[element], "%s under %s: gradient of %s differs by %g",
                  name, words, worst, gradient);
    engine_result_finish(&nccl);
    engine_result_finish(&threads);
    graph_destroy(graph);
    plan_destroy(plan);
}

START_TEST(data_goes_any_way_under_every_role)
{
    int element = _i / 6, role = _i % 6, model = role % FAMILIES;
    const char *pair[] = {roles[role]->name, "batch"};
    struct graph *graph = graph_of(model, ELEMENT_F32);
    check_plan(element, model,
               engine_plan(graph, 1, (int[]){2, 2}, 2, pair, 2, FAMILIES_SAMPLES / 2, "1f1b"),
               pair[0]);
    graph_destroy(graph);
}
END_TEST

START_TEST(data_goes_any_way_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    int model = _i % FAMILIES;
    struct graph *graph = graph_of(model, ELEMENT_F32);
    char words[32];
    snprintf(words, sizeof words, "seed %lu", (unsigned long)seed);
    check_plan(1, model, engine_plan_random(graph, seed, 4, FAMILIES_SAMPLES), words);
    graph_destroy(graph);
}
END_TEST

SUITE(fabrics)
{
    TCase *tcase = tcase_create("fabrics");
    tcase_set_timeout(tcase, 120);
    suite_add_rows(tcase, data_goes_any_way_under_every_role, 2 * 6);
    tcase_add_loop_test(tcase, data_goes_any_way_under_random_plans, 0, test_share(4));
    return suite_run("fabrics", tcase, NULL);
}
