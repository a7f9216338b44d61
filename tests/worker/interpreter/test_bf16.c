/* test_bf16.c - training in bf16, with masters in f32, follows training in f32; under every role
 * and random plans, on the processor, or on a device where there is one. */
#include "tests/support/suite.h"
#include "tests/worker/interpreter/small_families.h"

#include <stdio.h>

#define LOSS_LIMIT 1e-2
/* Times as far from f32 as the gradients of one rank, which are off by rounding. */
#define GRADIENT_SHARE 1.5

static const struct device *device; /* what is tested: an accelerator, where there is one */
static struct graph *wide[FAMILIES], *narrow[FAMILIES];
static struct engine_result exact[FAMILIES]; /* one rank in f32 */
static double rounding[FAMILIES];            /* how far its gradients are from those in bf16 */

static void run(const struct device *on, const struct graph *graph, const struct plan *plan,
                const char *name, struct engine_result *result)
{
    struct engine_options options = {
        .device = on, .steps = FAMILIES_STEPS, .ignored = FAMILIES_IGNORED, .poison = true};
    struct error err = {""};
    int rc = engine_run(graph, plan, &options, result, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.text);
}

static void setup(void)
{
    struct engine_result rounded[FAMILIES];
    const char *worst;
    device = families_cuda();
    device = device ? device : &device_cpu;
    families_build(ELEMENT_F32, wide);
    families_build(ELEMENT_BF16, narrow);
    families_train(wide, exact);
    families_train(narrow, rounded);
    for (int i = 0; i < FAMILIES; i++) {
        rounding[i] = engine_gradient_difference(&rounded[i], &exact[i], wide[i], &worst);
        ck_assert_double_gt(rounding[i], 1e-4);
    }
    families_forget(rounded);
}

static void teardown(void)
{
    families_forget(exact);
    families_finish(wide);
    families_finish(narrow);
}

/* Takes the plan. */
static void check_plan(int model, struct plan *plan, const char *name)
{
    struct engine_result result;
    const char *worst = "", *family = families[model].family;
    run(device, narrow[model], plan, name, &result);
    double loss = engine_loss_difference(&result, &exact[model], FAMILIES_STEPS);
    double gradient = engine_gradient_difference(&result, &exact[model], wide[model], &worst);
    ck_assert_msg(loss <= LOSS_LIMIT, "%s on %s under %s: loss differs by %g", family, device->name,
                  name, loss);
    ck_assert_msg(gradient <= GRADIENT_SHARE * rounding[model],
                  "%s on %s under %s: gradient of %s differs by %g, one rank's by %g", family,
                  device->name, name, worst, gradient, rounding[model]);
    for (int rank = 0; rank < result.ranks; rank++)
        ck_assert_uint_eq(result.sent[rank], result.words[rank]);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(families_train_under_every_role)
{
    const char *names[] = {roles[_i % 6]->name, "batch"};
    int model = _i / 6;
    check_plan(model, engine_plan(wide[model], 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"), names[0]);
}
END_TEST

START_TEST(families_train_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    int model = _i % FAMILIES;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(model, engine_plan_random(wide[model], seed, 4, 8), name);
}
END_TEST

/* Wide and long enough for a library's attention, where the device has one. */
START_TEST(attention_of_common_widths_trains_as_plain_c)
{
    static const struct job_model round = {
        .family = "gpt", .layers = 1, .hidden = 64, .heads = 2, .seq = 64, .vocab = 36, .ffn = 64};
    const struct device *const used[] = {&device_plain, &device_plain, device};
    struct graph *graphs[3];
    struct engine_result results[3];
    struct error err = {""};
    const char *worst = "";
    for (int i = 0; i < 3; i++) {
        enum element element = i == 0 ? ELEMENT_F32 : ELEMENT_BF16;
        ck_assert_msg(model_build(&round, element, &graphs[i], &err) == 0, "%s", err.text);
        struct plan *plan = engine_plan_one(graphs[i], 1, FAMILIES_SAMPLES);
        run(used[i], graphs[i], plan, used[i]->name, &results[i]);
        plan_destroy(plan);
    }
    double loss = engine_loss_difference(&results[2], &results[0], FAMILIES_STEPS);
    double plain = engine_gradient_difference(&results[1], &results[0], graphs[0], &worst);
    double gradient = engine_gradient_difference(&results[2], &results[0], graphs[0], &worst);
    ck_assert_msg(loss <= LOSS_LIMIT, "loss differs by %g", loss);
    ck_assert_msg(gradient <= GRADIENT_SHARE * plain,
                  "gradient of %s differs by %g, that of plain C by %g", worst, gradient, plain);
    for (int i = 0; i < 3; i++) {
        engine_result_finish(&results[i]);
        graph_destroy(graphs[i]);
    }
}
END_TEST

SUITE(bf16)
{
    TCase *tcase = tcase_create("bf16");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    suite_add_rows(tcase, families_train_under_every_role, 6 * FAMILIES);
    tcase_add_loop_test(tcase, families_train_under_random_plans, 0, test_share(6));
    tcase_add_test(tcase, attention_of_common_widths_trains_as_plain_c);
    return suite_run("bf16", tcase, NULL);
}
