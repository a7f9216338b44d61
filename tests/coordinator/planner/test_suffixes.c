/* test_suffixes.c - what is left of random suffixes with many ties, against all of them sorted and
 * compared with each other. */
#include "common/base/random.h"
#include "coordinator/planner/exact/suffixes.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define SUFFIXES 60
#define ROUNDS 400

static bool comes_before(const struct suffix *a, const struct suffix *b)
{
    if (a->sum_s != b->sum_s)
        return a->sum_s < b->sum_s;
    if (a->longest_s != b->longest_s)
        return a->longest_s < b->longest_s;
    if (a->rest_s != b->rest_s)
        return a->rest_s < b->rest_s;
    if (a->end != b->end)
        return a->end < b->end;
    return a->node != b->node ? a->node < b->node : a->next < b->next;
}

static bool dominates(const struct suffix *a, const struct suffix *b)
{
    return a->sum_s <= b->sum_s && a->longest_s <= b->longest_s &&
           a->sum_s + a->rest_s <= b->sum_s + b->rest_s && comes_before(a, b);
}

static bool is_dominated(const struct suffix *all, const struct suffix *suffix)
{
    for (int i = 0; i < SUFFIXES; i++)
        if (dominates(&all[i], suffix))
            return true;
    return false;
}

static int below(uint64_t *drawn, int count)
{
    return (int)random_below(test_seed(), 2, (*drawn)++, (uint64_t)count);
}

/* `next` is the order in which they are offered. The rest is at times so small that adding it to
 * the sum changes nothing. */
static struct suffix random_suffix(uint64_t *drawn, int next)
{
    return (struct suffix){.sum_s = below(drawn, 6),
                           .longest_s = below(drawn, 6),
                           .rest_s = below(drawn, 3) ? below(drawn, 6) : 1e-20 * below(drawn, 3),
                           .end = below(drawn, 2),
                           .node = below(drawn, 2),
                           .next = next};
}

START_TEST(what_is_left_is_what_nothing_before_it_dominates)
{
    struct suffixes list = {0};
    uint64_t drawn = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct suffix all[SUFFIXES];
        struct suffixes left = {0};
        size_t expected = 0;
        for (int i = 0; i < SUFFIXES; i++) {
            all[i] = random_suffix(&drawn, i);
            suffixes_offer(&list, &all[i]);
        }
        suffixes_move(&list, &left);
        for (int i = 0; i < SUFFIXES; i++)
            expected += !is_dominated(all, &all[i]);
        ck_assert_uint_eq(left.count, expected);
        for (size_t i = 0; i < left.count; i++) {
            ck_assert(!is_dominated(all, &left.items[i]));
            ck_assert(i == 0 || comes_before(&left.items[i - 1], &left.items[i]));
        }
        free(left.items);
    }
    free(list.items);
}
END_TEST

START_TEST(the_fastest_are_kept_and_the_bound_of_the_others_told)
{
    struct suffix items[] = {{.least_s = 3}, {.least_s = 1}, {.least_s = 4}, {.least_s = 2}};
    struct suffixes list = {items, 4, 4};
    ck_assert_double_eq(suffixes_cut_off(&list, 4), INFINITY);
    ck_assert_double_eq(items[0].least_s, 3);
    ck_assert_double_eq(suffixes_cut_off(&list, 2), 3);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_double_eq(items[0].least_s, 1);
    ck_assert_double_eq(items[1].least_s, 2);
}
END_TEST

SUITE(suffixes)
{
    TCase *tcase = tcase_create("suffixes");
    tcase_add_test(tcase, what_is_left_is_what_nothing_before_it_dominates);
    tcase_add_test(tcase, the_fastest_are_kept_and_the_bound_of_the_others_told);
    return suite_run("suffixes", tcase, NULL);
}
