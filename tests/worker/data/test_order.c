/* test_order.c - the order of windows is a permutation, seeded, and without bias. */
#include "tests/support/suite.h"
#include "worker/data/data.h"

#include <stdlib.h>
#include <string.h>

/* Around powers of two and four, where the domain changes. */
static const uint64_t counts[] = {1,  2,  3,  4,   5,   7,   8,    9,    15,   16,   17,
                                  63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 4097, 65537};

START_TEST(every_window_comes_once_an_epoch)
{
    uint64_t count = counts[_i];
    unsigned char *seen = calloc(count, 1);
    for (uint64_t position = 0; position < count; position++) {
        uint64_t window = order_at(42, 3, count, position);
        ck_assert_uint_lt(window, count);
        ck_assert_uint_eq(seen[window]++, 0);
    }
    free(seen);
}
END_TEST

static int count_equal(uint64_t seed, uint64_t epoch, uint64_t other_seed, uint64_t other_epoch)
{
    int equal = 0;
    for (uint64_t position = 0; position < 1000; position++)
        equal += order_at(seed, epoch, 1000, position) ==
                 order_at(other_seed, other_epoch, 1000, position);
    return equal;
}

/* Of two random permutations about one place in 1000 agrees. */
START_TEST(seeds_and_epochs_have_orders_of_their_own)
{
    ck_assert_int_lt(count_equal(1, 0, 2, 0), 8);
    ck_assert_int_lt(count_equal(1, 0, 1, 1), 8);
    ck_assert_int_lt(count_equal(1, 0, 0, 1), 8);
    ck_assert_int_eq(count_equal(1, 0, 1, 0), 1000);
}
END_TEST

START_TEST(an_order_is_not_the_files_order)
{
    int steps = 0;
    for (uint64_t position = 0; position + 1 < 1000; position++)
        steps += order_at(1, 0, 1000, position) + 1 == order_at(1, 0, 1000, position + 1);
    ck_assert_int_lt(steps, 8);
}
END_TEST

/* All 24 orders of 4 windows come about equally often: chi-square with 23 degrees of freedom is
 * above 49.7 once in a thousand times, and these numbers are always the same. */
START_TEST(small_orders_are_equally_likely)
{
    enum { TRIALS = 24000 };
    int times[256] = {0};
    for (uint64_t epoch = 0; epoch < TRIALS; epoch++) {
        unsigned order = 0;
        for (uint64_t position = 0; position < 4; position++)
            order = order << 2 | (unsigned)order_at(9, epoch, 4, position);
        times[order]++;
    }
    double square = 0;
    int kinds = 0;
    for (int i = 0; i < 256; i++) {
        if (!times[i])
            continue;
        double off = times[i] - TRIALS / 24.0;
        square += off * off / (TRIALS / 24.0);
        kinds++;
    }
    ck_assert_int_eq(kinds, 24);
    ck_assert_double_lt(square, 49.7);
}
END_TEST

/* The first window of an epoch among 1000: 99 degrees over groups of ten, once in a thousand
 * times above 148.2. */
START_TEST(no_window_is_preferred)
{
    enum { TRIALS = 20000, GROUPS = 100 };
    int times[GROUPS] = {0};
    for (uint64_t epoch = 0; epoch < TRIALS; epoch++)
        times[order_at(5, epoch, 1000, 0) / 10]++;
    double square = 0;
    for (int i = 0; i < GROUPS; i++) {
        double off = times[i] - (double)TRIALS / GROUPS;
        square += off * off / ((double)TRIALS / GROUPS);
    }
    ck_assert_double_lt(square, 148.2);
}
END_TEST

START_TEST(a_huge_corpus_needs_no_table)
{
    uint64_t count = (UINT64_C(1) << 40) + 7;
    ck_assert_uint_lt(order_at(1, 0, count, count - 1), count);
    ck_assert_uint_ne(order_at(1, 0, count, 0), order_at(1, 0, count, 1));
}
END_TEST

SUITE(order)
{
    TCase *tcase = tcase_create("order");
    tcase_add_loop_test(tcase, every_window_comes_once_an_epoch, 0, sizeof counts / sizeof *counts);
    tcase_add_test(tcase, seeds_and_epochs_have_orders_of_their_own);
    tcase_add_test(tcase, an_order_is_not_the_files_order);
    tcase_add_test(tcase, small_orders_are_equally_likely);
    tcase_add_test(tcase, no_window_is_preferred);
    tcase_add_test(tcase, a_huge_corpus_needs_no_table);
    return suite_run("order", tcase, NULL);
}
