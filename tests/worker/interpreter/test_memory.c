/* test_memory.c - the arena holds what a program says, all of it and no more: nothing is read
 * before it is written, and every region is used to its end. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define STEPS 2
#define CACHE_LINE 64 /* buffers begin there */

static struct graph *graph;

static const struct job_model small = {
    .family = "gpt", .layers = 3, .hidden = 48, .heads = 4, .seq = 12, .vocab = 36, .ffn = 96};

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
}

static void teardown(void)
{
    graph_destroy(graph);
}

static void run(const struct plan *plan, bool poison, struct engine_result *result,
                const char *name)
{
    struct engine_options options = {.steps = STEPS, .ignored = 0.2, .poison = poison};
    struct error err = {""};
    int rc = engine_run(graph, plan, &options, result, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.text);
}

static void check_touched(const struct engine_result *result, const char *name)
{
    static const char *const regions[] = {"state", "saved", "transient", "communication"};
    for (int region = 0; region < REGIONS; region++)
        for (int rank = 0; rank < result->ranks; rank++) {
            uint64_t touched = result->touched[region][rank];
            uint64_t reserved = result->reserved[region][rank];
            /* A rank without samples saves nothing. Where the head is recomputed, its sum of losses
             * is all that it has there, and nothing is added to that. */
            bool idle = region == REGION_TRANSIENT && result->reserved[REGION_SAVED][rank] == 0 &&
                        reserved == CACHE_LINE;
            bool used = (double)touched >= 0.95 * (double)reserved ||
                        reserved - touched < CACHE_LINE; /* the last buffer's padding */
            ck_assert_msg(touched <= reserved && (used || idle),
                          "%s: rank %d touched %lu of the %lu bytes of its %s region", name, rank,
                          (unsigned long)touched, (unsigned long)reserved, regions[region]);
        }
}

/* A NaN in what is read before it is written would reach the loss; beyond the end it faults. */
START_TEST(poisoned_memory_gives_the_same_bits_and_is_used_to_its_end)
{
    char name[64];
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct plan *plan = engine_plan_random(graph, seed, 8, 8);
    struct engine_result clean, poisoned;
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    run(plan, false, &clean, name);
    run(plan, true, &poisoned, name);
    const char *what = engine_differs(&clean, &poisoned, graph, STEPS);
    ck_assert_msg(!what, "%s: %s differs", name, what);
    check_touched(&poisoned, name);
    engine_result_finish(&clean);
    engine_result_finish(&poisoned);
    plan_destroy(plan);
}
END_TEST

START_TEST(an_arena_is_zero_and_says_how_far_it_was_written)
{
    uint64_t bytes[REGIONS] = {4096 + 64, 64, 0, 128};
    struct arena *arena;
    struct error err;
    ck_assert_int_eq(arena_reserve(bytes, NULL, NULL, &arena, &err), 0);
    for (int region = 0; region < REGIONS; region++)
        for (uint64_t i = 0; i < bytes[region]; i++)
            ck_assert_int_eq(arena_region(arena, region)[i], 0);
    arena_poison(arena);
    for (int region = 0; region < REGIONS; region++)
        ck_assert_uint_eq(arena_touched(arena, region), 0);
    arena_region(arena, REGION_STATE)[4100] = 1;
    ck_assert_uint_eq(arena_touched(arena, REGION_STATE), 4104);
    ck_assert_uint_eq(arena_touched(arena, REGION_SAVED), 0);
    arena_release(arena);
}
END_TEST

START_TEST(a_write_beyond_a_region_faults)
{
    uint64_t bytes[REGIONS] = {64, 4096, 4096 - 64, 64};
    struct arena *arena;
    struct error err;
    ck_assert_int_eq(arena_reserve(bytes, NULL, NULL, &arena, &err), 0);
    volatile char *end = arena_region(arena, (enum region)_i) + bytes[_i];
    end[-1] = 1;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would tell its own story */
    *end = 1;
}
END_TEST

START_TEST(a_reservation_that_is_too_large_is_refused_with_its_sizes)
{
    uint64_t bytes[REGIONS] = {1ull << 20, 1ull << 60, 0, 0};
    struct arena *arena;
    struct error err;
    ck_assert_int_lt(arena_reserve(bytes, NULL, NULL, &arena, &err), 0);
    ck_assert_msg(strstr(err.text, "state 1.0 MiB, saved activations ") != NULL, "%s", err.text);
}
END_TEST

SUITE(memory)
{
    TCase *arena = tcase_create("arena");
    tcase_add_test(arena, an_arena_is_zero_and_says_how_far_it_was_written);
    tcase_add_loop_test_raise_signal(arena, a_write_beyond_a_region_faults, SIGSEGV, 0, REGIONS);
    tcase_add_test(arena, a_reservation_that_is_too_large_is_refused_with_its_sizes);
    TCase *plans = tcase_create("plans");
    tcase_add_unchecked_fixture(plans, setup, teardown);
    tcase_set_timeout(plans, 60);
    tcase_add_loop_test(plans, poisoned_memory_gives_the_same_bits_and_is_used_to_its_end, 0,
                        test_share(12));
    return suite_run("memory", arena, plans, NULL);
}
