/* test_suite.c - how many random cases are drawn, and from which seed. */
#include "tests/support/suite.h"

#include <stdlib.h>

START_TEST(everything_is_drawn_unless_asked_otherwise)
{
    unsetenv("GIMBAL_TEST_SHARE");
    unsetenv("GIMBAL_TEST_SOAK");
    ck_assert_int_eq(test_share(300), 300);
    ck_assert(!test_soak());
}
END_TEST

START_TEST(a_share_is_rounded_up_and_never_nothing)
{
    setenv("GIMBAL_TEST_SHARE", "0.1", 1);
    ck_assert_int_eq(test_share(301), 31);
    ck_assert_int_eq(test_share(3), 1);
    ck_assert_int_eq(test_share(0), 1);
}
END_TEST

START_TEST(a_soak_draws_a_hundredfold_unless_a_share_is_named)
{
    unsetenv("GIMBAL_TEST_SHARE");
    setenv("GIMBAL_TEST_SOAK", "1", 1);
    ck_assert_int_eq(test_share(300), 30000);
    setenv("GIMBAL_TEST_SHARE", "2", 1);
    ck_assert_int_eq(test_share(300), 600);
}
END_TEST

START_TEST(a_share_that_is_no_number_stops_the_program)
{
    setenv("GIMBAL_TEST_SHARE", "most", 1);
    test_share(300);
}
END_TEST

START_TEST(the_seed_follows_the_text_and_nothing_else)
{
    setenv("GIMBAL_TEST_SEED", "69f2037", 1);
    uint64_t seed = test_seed();
    ck_assert_uint_eq(test_seed(), seed);
    setenv("GIMBAL_TEST_SEED", "14c533e", 1);
    ck_assert_uint_ne(test_seed(), seed);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("random");
    tcase_add_test(tcase, everything_is_drawn_unless_asked_otherwise);
    tcase_add_test(tcase, a_share_is_rounded_up_and_never_nothing);
    tcase_add_test(tcase, a_soak_draws_a_hundredfold_unless_a_share_is_named);
    tcase_add_exit_test(tcase, a_share_that_is_no_number_stops_the_program, EXIT_FAILURE);
    tcase_add_test(tcase, the_seed_follows_the_text_and_nothing_else);
    return suite_run("suite", tcase, NULL);
}
