/* test_bmw.c - the walk over partitions, by hand: it visits those that its conditions allow. */
#include "coordinator/planner/searches/bmw.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

#define BLOCKS_MAX 8
#define VISITS_MAX 16

/* Blocks with a time and a memory each; a stage keeps as many micro-batches as there are stages
 * from it on. */
struct table {
    int blocks, stages;
    double seconds[BLOCKS_MAX];
    int bytes[BLOCKS_MAX];
    int memory;
    int visits[VISITS_MAX][BLOCKS_MAX];
    int count;
};

static double seconds_of(const void *context, int stage, int first, int end)
{
    const struct table *table = context;
    double sum = 0;
    (void)stage;
    for (int b = first; b < end; b++)
        sum += table->seconds[b];
    return sum;
}

static double bytes_of(const void *context, int stage, int first, int end)
{
    const struct table *table = context;
    double sum = 0;
    for (int b = first; b < end; b++)
        sum += table->bytes[b];
    return (table->stages - stage) * sum;
}

static struct bmw_stage plan(void *context, int stage, int first, int end)
{
    const struct table *table = context;
    double bytes = bytes_of(table, stage, first, end);
    return (struct bmw_stage){seconds_of(table, stage, first, end), (uint64_t)bytes,
                              bytes <= table->memory};
}

static void visit(void *context, const int *ends)
{
    struct table *table = context;
    ck_assert_int_lt(table->count, VISITS_MAX);
    memcpy(table->visits[table->count++], ends, (size_t)table->stages * sizeof *ends);
}

/* With the balanced partitions as they should be; the visits are left in the table. */
static void walk(struct table *table, const int *memory_balanced, const int *time_balanced)
{
    struct bmw_walk walk = {table->stages, table, plan, visit};
    size_t size = (size_t)table->stages * sizeof(int);
    int ends[2][BLOCKS_MAX];
    bmw_balance(table->blocks, table->stages, bytes_of, table, ends[0]);
    bmw_balance(table->blocks, table->stages, seconds_of, table, ends[1]);
    ck_assert_mem_eq(ends[0], memory_balanced, size);
    ck_assert_mem_eq(ends[1], time_balanced, size);
    bmw_walk(&walk, ends[0], ends[1]);
}

static void check_visits(const struct table *table, int count, const int (*visits)[BLOCKS_MAX])
{
    ck_assert_int_eq(table->count, count);
    for (int i = 0; i < count; i++)
        ck_assert_mem_eq(table->visits[i], visits[i], (size_t)table->stages * sizeof(int));
}

/* From 1|5 blocks, 8 and 8 bytes, 1 and 9 seconds: the second stage gives its first block until
 * both take 5 seconds; to go back would be slower. 5|1 has 22 bytes and 1. */
START_TEST(blocks_move_from_the_slowest_stage_until_times_are_balanced)
{
    struct table table = {6, 2, {1, 1, 1, 1, 1, 5}, {4, 3, 2, 1, 1, 1}, 22, {{0}}, 0};
    walk(&table, (int[]){1, 6}, (int[]){5, 6});
    check_visits(&table, 5, (const int[][BLOCKS_MAX]){{1, 6}, {2, 6}, {3, 6}, {4, 6}, {5, 6}});
}
END_TEST

/* 4|2 has 20 bytes on its first stage. */
START_TEST(a_partition_with_a_stage_that_does_not_fit_is_not_queued)
{
    struct table table = {6, 2, {1, 1, 1, 1, 1, 5}, {4, 3, 2, 1, 1, 1}, 19, {{0}}, 0};
    walk(&table, (int[]){1, 6}, (int[]){5, 6});
    check_visits(&table, 3, (const int[][BLOCKS_MAX]){{1, 6}, {2, 6}, {3, 6}});
}
END_TEST

/* 1|1|3 takes 3, 4 and 8 seconds; 1|2|2, which is p_t, 3, 7 and 5, with 9, 10 and 2 bytes: a_m is
 * 11/21. Of its neighbours 2|1|2 takes 7, 3 and 5 seconds, but has 21, 2 and 2 bytes, and 1|1|3 is
 * slower. */
START_TEST(a_partition_whose_memory_is_balanced_worse_is_not_queued)
{
    struct table table = {5, 3, {3, 4, 3, 1, 4}, {3, 4, 1, 1, 1}, 27, {{0}}, 0};
    walk(&table, (int[]){1, 2, 5}, (int[]){1, 3, 5});
    check_visits(&table, 2, (const int[][BLOCKS_MAX]){{1, 2, 5}, {1, 3, 5}});
}
END_TEST

START_TEST(one_stage_has_one_partition)
{
    struct table table = {3, 1, {1, 2, 3}, {1, 1, 1}, 3, {{0}}, 0};
    walk(&table, (int[]){3}, (int[]){3});
    check_visits(&table, 1, (const int[][BLOCKS_MAX]){{3}});
}
END_TEST

SUITE(bmw)
{
    TCase *partitions = tcase_create("partitions");
    tcase_add_test(partitions, blocks_move_from_the_slowest_stage_until_times_are_balanced);
    tcase_add_test(partitions, a_partition_with_a_stage_that_does_not_fit_is_not_queued);
    tcase_add_test(partitions, a_partition_whose_memory_is_balanced_worse_is_not_queued);
    tcase_add_test(partitions, one_stage_has_one_partition);
    return suite_run("bmw", partitions, NULL);
}
