/* test_base.c - words of errors, units, random numbers and histograms. */
#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/base/random.h"
#include "common/base/units.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>

START_TEST(a_prefix_goes_in_front)
{
    struct error err;
    int rc = error_set(&err, -EINVAL, "stage %d has no layers", 2);
    ck_assert_int_eq(error_prefix(&err, rc, "load plan '%s'", "p.json"), -EINVAL);
    ck_assert_str_eq(err.text, "load plan 'p.json': stage 2 has no layers");
}
END_TEST

START_TEST(seconds_are_printed_as_people_say_them)
{
    char text[32];
    ck_assert_str_eq(units_print_seconds(text, sizeof text, 119.5), "119.50 s");
    ck_assert_str_eq(units_print_seconds(text, sizeof text, 179.7), "3m00s");
    ck_assert_str_eq(units_print_seconds(text, sizeof text, 7500), "2h05m");
    ck_assert_str_eq(units_print_duration(text, sizeof text, 0.4), "0s");
    ck_assert_str_eq(units_print_duration(text, sizeof text, 59.6), "1m00s");
    ck_assert_str_eq(units_print_duration(text, sizeof text, 3599.6), "1h00m");
    ck_assert_str_eq(units_print_duration(text, sizeof text, 90000), "1d01h");
}
END_TEST

START_TEST(sizes_and_durations_are_read_with_their_units)
{
    double bytes, seconds;
    ck_assert_int_eq(units_parse(UNITS_BYTES, "1.5GiB", &bytes, NULL), 0);
    ck_assert_double_eq(bytes, 3ull << 29);
    ck_assert_int_eq(units_parse(UNITS_SECONDS, "10m", &seconds, NULL), 0);
    ck_assert_double_eq(seconds, 600);
}
END_TEST

START_TEST(a_wrong_unit_is_named_with_the_right_ones)
{
    struct error err;
    double bytes, seconds;
    ck_assert_int_eq(units_parse(UNITS_BYTES, "12parsecs", &bytes, &err), -EINVAL);
    ck_assert_pstr_eq(err.text,
                      "'12parsecs' is not a size: write a number and B, KiB, MiB, GiB or TiB");
    ck_assert_int_eq(units_parse(UNITS_BYTES, "-1", &bytes, &err), -EINVAL);
    ck_assert_int_eq(units_parse(UNITS_SECONDS, "30", &seconds, &err), -EINVAL);
}
END_TEST

/* Known answers of the reference implementation (Random123, kat_vectors: philox4x32 10). */
START_TEST(philox_gives_the_published_numbers)
{
    ck_assert_uint_eq(random_bits(0, 0, 0), 0xe169c58d6627e8d5ull);
    ck_assert_uint_eq(random_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX), 0x41c83b0e408f276dull);
}
END_TEST

START_TEST(normal_numbers_have_mean_zero_and_deviation_one)
{
    double sum = 0, square = 0;
    const int count = 100000;
    for (int i = 0; i < count; i++) {
        double x = random_normal(7, 3, (uint64_t)i);
        sum += x;
        square += x * x;
    }
    ck_assert_double_lt(fabs(sum / count), 0.015);
    ck_assert_double_lt(fabs(square / count - 1), 0.02);
}
END_TEST

START_TEST(a_histogram_tells_quantiles_at_most_an_eighth_too_high)
{
    struct histogram histogram = {0};
    ck_assert_uint_eq(histogram_quantile(&histogram, 0.5), 0);
    const uint64_t count = 100000;
    for (uint64_t i = 0; i < count; i++)
        histogram_add(&histogram, i * i); /* of i, i + 1 are no greater: the quantile is known */
    for (double share = 0.01; share < 1; share += 0.01) {
        uint64_t rank = (uint64_t)ceil(share * (double)count) - 1, right = rank * rank;
        uint64_t told = histogram_quantile(&histogram, share);
        ck_assert_uint_ge(told, right);
        ck_assert_uint_le(told, right + right / 8);
    }
    ck_assert_uint_eq(histogram_quantile(&histogram, 1), (count - 1) * (count - 1));
    histogram_add(&histogram, UINT64_MAX);
    ck_assert_uint_eq(histogram_quantile(&histogram, 1), UINT64_MAX);
}
END_TEST

SUITE(base)
{
    TCase *tcase = tcase_create("base");
    tcase_add_test(tcase, a_prefix_goes_in_front);
    tcase_add_test(tcase, seconds_are_printed_as_people_say_them);
    tcase_add_test(tcase, sizes_and_durations_are_read_with_their_units);
    tcase_add_test(tcase, a_wrong_unit_is_named_with_the_right_ones);
    tcase_add_test(tcase, philox_gives_the_published_numbers);
    tcase_add_test(tcase, normal_numbers_have_mean_zero_and_deviation_one);
    tcase_add_test(tcase, a_histogram_tells_quantiles_at_most_an_eighth_too_high);
    return suite_run("base", tcase, NULL);
}
