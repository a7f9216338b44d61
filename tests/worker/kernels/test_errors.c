/* test_errors.c - what errors of CUDA are to the program, and what they say to a person. */
#include "tests/support/suite.h"
#include "worker/kernels/cuda/errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The runtime's numbers: driver_types.h of CUDA 13. */
static const struct {
    int status, rc;
    const char *words;
} cases[] = {
    {2, -ENOMEM, "memory is full"},         {35, -ENODEV, "newer one is needed"},
    {100, -ENODEV, "CUDA_VISIBLE_DEVICES"}, {209, -ENODEV, "compute capability"},
    {700, -EIO, "fault of this program"},   {719, -EIO, "device was lost"},
};

START_TEST(an_error_says_what_was_done_what_it_means_and_its_name)
{
    struct error err;
    int rc = errors_set(&err, cases[_i].status, "cudaErrorName", "text", "setting a mark");
    ck_assert_int_eq(rc, cases[_i].rc);
    ck_assert_ptr_nonnull(strstr(err.text, "CUDA, setting a mark: "));
    ck_assert_ptr_nonnull(strstr(err.text, cases[_i].words));
    ck_assert_ptr_nonnull(strstr(err.text, "(cudaErrorName)"));
}
END_TEST

START_TEST(an_error_that_nobody_knows_keeps_the_words_of_the_runtime)
{
    struct error err;
    ck_assert_int_eq(errors_set(&err, 9999, "cudaErrorNew", "the moon is full", "gelu"), -EIO);
    ck_assert_str_eq(err.text, "CUDA, gelu: the moon is full (cudaErrorNew)");
}
END_TEST

START_TEST(a_reservation_that_fails_says_what_was_asked_for_and_what_there_is)
{
    struct error err;
    int rc = errors_set_memory(&err, UINT64_C(160) << 30, UINT64_C(96) << 30, UINT64_C(140) << 30);
    ck_assert_int_eq(rc, -ENOMEM);
    ck_assert_str_eq(err.text, "160.0 GiB of the device's memory were asked for; 96.0 GiB of "
                               "140.0 GiB are free");
}
END_TEST

SUITE(errors)
{
    TCase *tcase = tcase_create("errors");
    tcase_add_loop_test(tcase, an_error_says_what_was_done_what_it_means_and_its_name, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tcase, an_error_that_nobody_knows_keeps_the_words_of_the_runtime);
    tcase_add_test(tcase, a_reservation_that_fails_says_what_was_asked_for_and_what_there_is);
    return suite_run("errors", tcase, NULL);
}
