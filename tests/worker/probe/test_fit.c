/* test_fit.c - what sizes took, as a function of their work. */
#include "tests/support/suite.h"
#include "worker/probe/fit.h"

#define CLOSE 1e-6 /* of what is wanted */

static double seconds(const double terms[FIT_TERMS], double flops, double bytes)
{
    return terms[FIT_FIXED] + terms[FIT_FLOPS] * flops + terms[FIT_BYTES] * bytes;
}

/* Of sizes that differ as a sequence's length does, which counts twice in operations. */
static const double work[][2] = {{1e6, 1e5}, {6.4e7, 3e6}, {1.28e8, 1e6}, {3e7, 2e6}};
#define SIZES (sizeof work / sizeof *work)

static const double truths[][FIT_TERMS] = {{2e-6, 1e-11, 5e-11}, {0, 1e-11, 5e-11},
                                           {2e-6, 1e-11, 0},     {2e-6, 0, 5e-11},
                                           {0, 1e-11, 0},        {0, 0, 5e-11}};

START_TEST(what_made_the_times_is_found)
{
    const double *truth = truths[_i];
    struct fit_sample samples[SIZES];
    double found[FIT_TERMS];
    for (size_t i = 0; i < SIZES; i++)
        samples[i] = (struct fit_sample){{1, work[i][0], work[i][1]},
                                         seconds(truth, work[i][0], work[i][1])};
    fit_work(samples, SIZES, found);
    for (size_t i = 0; i < SIZES; i++)
        ck_assert_double_eq_tol(seconds(found, work[i][0], work[i][1]) / samples[i].seconds, 1,
                                CLOSE);
    for (int term = 0; term < FIT_TERMS; term++)
        ck_assert_double_ge(found[term], 0);
}
END_TEST

/* A copy's bytes grow with its operations: nothing tells them apart, and operations are it. */
START_TEST(work_that_grows_together_is_counted_once)
{
    struct fit_sample samples[3];
    double found[FIT_TERMS];
    for (int i = 0; i < 3; i++)
        samples[i] = (struct fit_sample){{1, 1e4 * (i + 1), 4e4 * (i + 1)}, 1e-6 + 1e-5 * (i + 1)};
    fit_work(samples, 3, found);
    ck_assert_double_eq_tol(found[FIT_FIXED], 1e-6, 1e-11);
    ck_assert_double_eq_tol(found[FIT_FLOPS], 1e-9, 1e-14);
    ck_assert_double_eq(found[FIT_BYTES], 0);
}
END_TEST

/* The small size took longer than the large one: somebody disturbed it. */
START_TEST(nothing_is_negative)
{
    const struct fit_sample samples[] = {{{1, 1e6, 1e5}, 3e-5}, {{1, 2e6, 2e5}, 2e-5}};
    double found[FIT_TERMS];
    fit_work(samples, 2, found);
    for (int term = 0; term < FIT_TERMS; term++)
        ck_assert_double_ge(found[term], 0);
    double first = seconds(found, 1e6, 1e5);
    ck_assert_double_gt(first, 1.9e-5);
    ck_assert_double_lt(first, 3.1e-5);
}
END_TEST

/* Relative errors count: a hundred times as much work does not make the small size a hundred times
 * as unimportant. */
START_TEST(small_sizes_count_as_much_as_large_ones)
{
    const struct fit_sample samples[] = {{{1, 0, 1e4}, 1e-6}, {{1, 0, 1e6}, 1.1e-4}};
    double found[FIT_TERMS];
    fit_work(samples, 2, found);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(seconds(found, 0, samples[i].work[FIT_BYTES]) / samples[i].seconds,
                                1, 0.06);
}
END_TEST

START_TEST(of_nothing_nothing_is_known)
{
    double found[FIT_TERMS] = {1, 2, 3};
    fit_work(NULL, 0, found);
    for (int term = 0; term < FIT_TERMS; term++)
        ck_assert_double_eq(found[term], 0);
}
END_TEST

/* Four ranks take 6 steps, each with a quarter of the bytes. */
START_TEST(a_link_is_what_its_exchanges_took)
{
    const struct hardware_link link = fit_link(4, 4000, 6e-6, 6e-6 + 6e-3);
    ck_assert_double_eq_tol(link.latency_s, 1e-6, 1e-15);
    ck_assert_double_eq_tol(link.seconds_per_byte, 1e-6, 1e-15);
}
END_TEST

/* Somebody disturbed the small one in every round. No link moves bytes in no time. */
START_TEST(a_large_exchange_that_took_less_is_the_bytes)
{
    const struct hardware_link link = fit_link(2, 1000, 4e-5, 2e-5);
    ck_assert_double_eq_tol(link.latency_s, 1e-5, 1e-15);
    ck_assert_double_eq_tol(link.seconds_per_byte, 2e-8, 1e-15);
    ck_assert_double_gt(fit_link(2, 1000, 2e-5, 2e-5).seconds_per_byte, 0);
}
END_TEST

SUITE(fit)
{
    TCase *tcase = tcase_create("fit");
    tcase_add_loop_test(tcase, what_made_the_times_is_found, 0,
                        (int)(sizeof truths / sizeof *truths));
    tcase_add_test(tcase, work_that_grows_together_is_counted_once);
    tcase_add_test(tcase, nothing_is_negative);
    tcase_add_test(tcase, small_sizes_count_as_much_as_large_ones);
    tcase_add_test(tcase, of_nothing_nothing_is_known);
    tcase_add_test(tcase, a_link_is_what_its_exchanges_took);
    tcase_add_test(tcase, a_large_exchange_that_took_less_is_the_bytes);
    return suite_run("fit", tcase, NULL);
}
