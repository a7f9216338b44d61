/* test_subnormal.c - numbers below the least normal one, in the thread that asks and in others. */
#include "tests/support/suite.h"
#include "worker/kernels/cpu/processor.h"

#include <float.h>
#include <pthread.h>

static void *halve(void *number)
{
    volatile float *x = number;
    x[1] = x[0] / 2;
    return NULL;
}

START_TEST(what_is_nearly_zero_is_zero_in_all_threads)
{
    float numbers[2] = {FLT_MIN, 1};
    pthread_t thread;
    subnormal_flush();
    ck_assert_int_eq(pthread_create(&thread, NULL, halve, numbers), 0);
    pthread_join(thread, NULL);
    ck_assert_float_eq(numbers[1], 0);
    halve(numbers);
    ck_assert_float_eq(numbers[1], 0);
}
END_TEST

SUITE(subnormal)
{
    TCase *tcase = tcase_create("subnormal");
    tcase_add_test(tcase, what_is_nearly_zero_is_zero_in_all_threads);
    return suite_run("subnormal", tcase, NULL);
}
