/* test_suite.c - how many random cases are drawn, and from which seed. */
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(what_a_user_has_set_does_not_reach_a_test)
{
    ck_assert_ptr_null(getenv("GIMBAL_ADDRESS"));
    ck_assert_str_ne(getenv("GIMBAL_PROFILE_CACHE"), "/proc/nowhere");
    ck_assert_str_eq(getenv("GIMBAL_MODULES"), "/proc/nowhere");
}
END_TEST

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

static int rows_run[7];

START_TEST(a_row)
{
    rows_run[_i]++;
}
END_TEST

/* How many times each row is run at a share, from a seed, as x, 0 or 1 a row. */
static const char *rows_of(const char *share, const char *seed)
{
    static char words[sizeof rows_run / sizeof *rows_run + 1];
    unsetenv("CK_TAP_LOG_FILE_NAME"); /* these are no cases of ours */
    setenv("GIMBAL_TEST_SHARE", share, 1);
    setenv("GIMBAL_TEST_SEED", seed, 1);
    memset(rows_run, 0, sizeof rows_run);
    TCase *tcase = tcase_create("rows");
    suite_add_rows(tcase, a_row, 7);
    Suite *suite = suite_create("rows");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    for (int row = 0; row < 7; row++)
        words[row] = (char)('0' + rows_run[row]);
    return words;
}

START_TEST(rows_are_all_run_or_a_share_of_them_and_every_one_has_its_turn)
{
    int met[7] = {0};
    ck_assert_str_eq(rows_of("1", "any"), "1111111");
    ck_assert_str_eq(rows_of("3", "any"), "1111111");
    for (char seed[] = "a"; *seed <= 'z'; ++*seed) {
        const char *words = rows_of("0.3", seed);
        int count = 0;
        for (int row = 0; row < 7; row++) {
            count += words[row] == '1';
            met[row] += words[row] == '1';
        }
        ck_assert_int_ge(count, 2);
        ck_assert_int_le(count, 3);
        ck_assert_ptr_nonnull(strchr(rows_of("0.001", seed), '1'));
    }
    for (int row = 0; row < 7; row++)
        ck_assert_int_gt(met[row], 0);
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

SUITE(suite)
{
    TCase *tcase = tcase_create("random");
    tcase_add_test(tcase, what_a_user_has_set_does_not_reach_a_test);
    tcase_add_test(tcase, everything_is_drawn_unless_asked_otherwise);
    tcase_add_test(tcase, a_share_is_rounded_up_and_never_nothing);
    tcase_add_test(tcase, a_soak_draws_a_hundredfold_unless_a_share_is_named);
    tcase_add_exit_test(tcase, a_share_that_is_no_number_stops_the_program, EXIT_FAILURE);
    tcase_add_test(tcase, rows_are_all_run_or_a_share_of_them_and_every_one_has_its_turn);
    tcase_add_test(tcase, the_seed_follows_the_text_and_nothing_else);
    return suite_run("suite", tcase, NULL);
}
