/* test_plan_diff.c - the differences of two plans in words. */
#include "common/base/memory.h"
#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/costs/plan_diff.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 4

static struct graph *graph;
static char told[2048];

static void setup(void)
{
    graph = world_graph(LAYERS);
}

static void teardown(void)
{
    graph_destroy(graph);
}

static void tell_cb(const char *what, const char *first, const char *second, void *context)
{
    (void)context;
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s: %s -> %s\n", what, first, second);
}

static int diff(const struct plan *a, const struct plan *b)
{
    struct error err;
    told[0] = '\0';
    return plan_diff(a, b, tell_cb, NULL, &err);
}

static struct plan *make(int stages, const char *role)
{
    return engine_plan(graph, stages, (int[]){2}, 1, (const char *[]){role}, 2, 4, "1f1b");
}

START_TEST(a_plan_does_not_differ_from_itself)
{
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, 8, 8);
    struct plan *copy = plan_copy(plan);
    ck_assert_int_eq(diff(plan, copy), 0);
    ck_assert_str_eq(told, "");
    plan_destroy(plan);
    plan_destroy(copy);
}
END_TEST

START_TEST(blocks_that_differ_alike_are_one_line)
{
    struct plan *a = make(1, "batch"), *b = make(1, "batch");
    b->blocks[2].zero = b->blocks[3].zero = 1;
    b->blocks[LAYERS + 1].recompute = RECOMPUTE_FULL;
    ck_assert_int_eq(diff(a, b), 2);
    ck_assert_str_eq(told, "layers 1 to 2: dp2 -> dp2 zero1\nhead: dp2 -> dp2 recompute full\n");
    plan_destroy(a);
    plan_destroy(b);
}
END_TEST

START_TEST(stages_and_micro_batches_are_told)
{
    struct plan *a = make(1, "batch"), *b = make(2, "batch");
    b->micro_batches *= 2;
    b->micro_batch_samples /= 2;
    b->schedule = schedule_find("gpipe");
    ck_assert_int_eq(diff(a, b), 7);
    ck_assert_ptr_nonnull(strstr(told, "devices: 2 -> 4\n"));
    ck_assert_ptr_nonnull(strstr(told, "pipeline stages: 1 -> 2\n"));
    ck_assert_ptr_nonnull(strstr(told, "micro-batches: 2 -> 4\n"));
    ck_assert_ptr_nonnull(strstr(told, "schedule: 1f1b -> gpipe\n"));
    ck_assert_ptr_nonnull(strstr(told, "stage 0: blocks: 6 -> 3\n"));
    ck_assert_ptr_nonnull(strstr(told, "stage 1: blocks: none -> 3\n"));
    plan_destroy(a);
    plan_destroy(b);
}
END_TEST

/* The same division in words, on a mesh of other axes, and with another block. */
START_TEST(rows_that_read_alike_say_how_they_differ)
{
    struct planner_result result = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < 3; i++) {
        struct plan *plan = make(1, "batch");
        snprintf(plan->id, sizeof plan->id, "p-%d", i);
        if (i == 1)
            plan->blocks[LAYERS + 1].zero = 1;
        if (i == 2) {
            plan->stages[0].mesh = (struct mesh){2, {2, 1}};
            for (int block = 0; block < plan->block_count; block++)
                plan->blocks[block].roles[1] = plan->blocks[block].roles[0];
            plan->blocks[0].zero = 2;
        }
        candidates_add(&result, &(struct candidate){.plan = plan, .fits = true, .tight_rank = -1});
    }
    candidates_print(&result, 0, out);
    fclose(out);
    ck_assert_msg(strstr(text, "p-0 with head: dp2 zero1, not dp2\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "p-0 with stage 0: axes: 2x1, not 2 (and 1 more)\n") != NULL, "%s",
                  text);
    free(text);
    candidates_finish(&result);
}
END_TEST

START_TEST(other_models_are_refused)
{
    struct graph *other = world_graph(LAYERS + 1);
    struct plan *a = make(1, "batch"), *b = engine_plan_one(other, 1, 8);
    ck_assert_int_eq(diff(a, b), -EINVAL);
    plan_destroy(a);
    plan_destroy(b);
    graph_destroy(other);
}
END_TEST

SUITE(plan_diff)
{
    TCase *tcase = tcase_create("diff");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_plan_does_not_differ_from_itself, 0, test_share(20));
    tcase_add_test(tcase, blocks_that_differ_alike_are_one_line);
    tcase_add_test(tcase, stages_and_micro_batches_are_told);
    tcase_add_test(tcase, rows_that_read_alike_say_how_they_differ);
    tcase_add_test(tcase, other_models_are_refused);
    return suite_run("plan_diff", tcase, NULL);
}
