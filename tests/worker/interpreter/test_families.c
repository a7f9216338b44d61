/* test_families.c - models that are no GPT train under every vector of roles on two axes as on one
 * rank, and their gradients are derivatives. */
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/derivative.h"
#include "tests/worker/interpreter/small_families.h"

#include <stdio.h>

static struct graph *graphs[FAMILIES];
static struct engine_result ones[FAMILIES];
static const struct engine_options options = {.steps = FAMILIES_STEPS, .ignored = FAMILIES_IGNORED};

static void setup(void)
{
    families_build(ELEMENT_F32, graphs);
    families_train(graphs, ones);
}

static void teardown(void)
{
    families_forget(ones);
    families_finish(graphs);
}

/* Takes the plan. */
static void check_plan(int model, struct plan *plan, const char *name)
{
    struct engine_result result;
    agreement_check(families[model].family, graphs[model], plan, &options, &ones[model], name,
                    &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(a_family_trains_under_every_vector_of_roles)
{
    const char *names[] = {roles[_i % 6]->name, roles[_i / 6]->name};
    char name[64];
    snprintf(name, sizeof name, "%s, %s", names[0], names[1]);
    for (int model = 0; model < FAMILIES; model++)
        check_plan(model, engine_plan(graphs[model], 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"),
                   name);
}
END_TEST

START_TEST(families_train_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(_i % FAMILIES, engine_plan_random(graphs[_i % FAMILIES], seed, 8, 8), name);
}
END_TEST

START_TEST(gradients_of_families_are_derivatives)
{
    const char *names[] = {"hidden", "context"};
    int model = _i % FAMILIES;
    struct plan *plan = engine_plan(graphs[model], 1, (int[]){2, 2}, 2, names, 1, 8, "1f1b");
    derivative_check(graphs[model], plan, &device_plain, test_seed(), families[model].family);
    plan_destroy(plan);
}
END_TEST

SUITE(families)
{
    TCase *tcase = tcase_create("families");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_family_trains_under_every_vector_of_roles, 0, 36);
    tcase_add_loop_test(tcase, families_train_under_random_plans, 0, test_share(12));
    tcase_add_loop_test(tcase, gradients_of_families_are_derivatives, 0, FAMILIES);
    return suite_run("families", tcase, NULL);
}
