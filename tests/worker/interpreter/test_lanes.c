/* test_lanes.c - a device with memory and streams of its own trains as plain C does: under every
 * role and random plans, ranks as threads that share the device, with the queues of a step as
 * streams. */
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/small_families.h"
#include "worker/interpreter/arena.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define STATE_BYTES 65536

static const struct device *cuda; /* NULL: this machine has none */
static struct graph *graphs[FAMILIES];
static struct engine_result ones[FAMILIES];

static void setup(void)
{
    cuda = families_cuda();
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
    struct engine_options options = {
        .device = cuda, .steps = FAMILIES_STEPS, .ignored = FAMILIES_IGNORED, .poison = true};
    struct engine_result result, again;
    const char *family = families[model].family;
    agreement_check(family, graphs[model], plan, &options, &ones[model], name, &result);
    agreement_check(family, graphs[model], plan, &options, &ones[model], name, &again);
    const char *differs = engine_differs(&result, &again, graphs[model], FAMILIES_STEPS);
    ck_assert_msg(!differs, "%s under %s: %s is not the same twice", family, name, differs);
    engine_result_finish(&result);
    engine_result_finish(&again);
    plan_destroy(plan);
}

START_TEST(families_train_under_every_role)
{
    const char *names[] = {roles[_i]->name, "batch"};
    for (int model = 0; model < FAMILIES && cuda; model++)
        check_plan(model, engine_plan(graphs[model], 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"),
                   names[0]);
}
END_TEST

START_TEST(families_train_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    int model = _i % FAMILIES;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    if (cuda)
        check_plan(model, engine_plan_random(graphs[model], seed, 4, 8), name);
}
END_TEST

/* Before and after it is pinned; the caller's memory is mapped as long as it is. */
START_TEST(a_state_comes_back_as_it_was_stored)
{
    uint64_t bytes[REGIONS] = {STATE_BYTES, 64, 64, 64};
    char *state =
        mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct accelerator *accelerator = cuda ? cuda->accelerator : NULL;
    struct device_stream *lane;
    struct arena *arena;
    struct error err;
    if (!cuda)
        return;
    ck_assert_int_eq(accelerator->stream_open(&lane, false, &err), 0);
    ck_assert_int_eq(arena_reserve(bytes, state, accelerator, &arena, &err), 0);
    accelerator->enter(lane);
    for (int round = 0; round < 2; round++) {
        memset(state, 'a' + round, STATE_BYTES);
        arena_store(arena, REGION_STATE, 0, STATE_BYTES);
        ck_assert_int_eq(arena_finish(arena, &err), 0);
        memset(state, 0, STATE_BYTES);
        arena_fetch(arena, REGION_STATE, 256, STATE_BYTES - 256);
        ck_assert_int_eq(arena_finish(arena, &err), 0);
        for (size_t i = 0; i < STATE_BYTES; i++)
            ck_assert_int_eq(state[i], i < 256 ? 0 : 'a' + round);
        ck_assert_int_eq(arena_pin_state(arena, &err), 0);
    }
    accelerator->enter(NULL);
    accelerator->stream_close(lane);
    arena_release(arena);
    munmap(state, STATE_BYTES);
}
END_TEST

START_TEST(what_the_device_cannot_hold_is_refused_with_the_sizes)
{
    struct job_model large = families[0];
    struct error err = {""};
    struct graph *graph = NULL;
    struct engine_result result;
    struct engine_options options = {.device = cuda, .steps = 1};
    if (!cuda)
        return;
    large.vocab = 1 << 24;
    large.hidden = 1024;
    large.heads = 8;
    ck_assert_int_eq(model_build(&large, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 1, 1);
    ck_assert_int_eq(engine_run(graph, plan, &options, &result, &err), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "of the device's memory were asked for"));
    engine_result_finish(&result);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

START_TEST(heads_that_are_too_wide_are_refused_in_words)
{
    struct job_model wide = families[0];
    struct error err = {""};
    struct graph *graph = NULL;
    struct engine_result result;
    struct engine_options options = {.device = cuda, .steps = 1};
    if (!cuda)
        return;
    wide.hidden = 132;
    wide.heads = 1;
    ck_assert_int_eq(model_build(&wide, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 1, 1);
    ck_assert_int_eq(engine_run(graph, plan, &options, &result, &err), -ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "a head is 132 numbers wide"));
    engine_result_finish(&result);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

SUITE(lanes)
{
    TCase *tcase = tcase_create("lanes");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    suite_add_rows(tcase, families_train_under_every_role, 6);
    tcase_add_loop_test(tcase, families_train_under_random_plans, 0, test_share(4));
    tcase_add_test(tcase, a_state_comes_back_as_it_was_stored);
    tcase_add_test(tcase, what_the_device_cannot_hold_is_refused_with_the_sizes);
    tcase_add_test(tcase, heads_that_are_too_wide_are_refused_in_words);
    return suite_run("lanes", tcase, NULL);
}
