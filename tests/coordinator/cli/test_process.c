/* test_process.c - the environment of programs that the command starts. The test's own program is
 * the shim that becomes them. */
#include "coordinator/cli/process.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const char *const nothing[] = {NULL};

static void setup(void)
{
    setenv("GIMBAL_EXECUTOR", "/usr/bin/env", 1); /* which prints what it gets */
    setenv("GIMBAL_TLS", "/certificates", 1);
    setenv("GIMBAL_TLS_MORE", "kept", 1);
    setenv("GIMBAL_ADDRESS", "tcp://127.0.0.1:1", 1);
}

/* As `env` prints it; to be freed. */
static char *environment_of_child(const char *const *without)
{
    struct error err = {""};
    char *text;
    ck_assert_msg(process_ask_text("gimbal-executor", nothing, without, &text, &err) == 0, "%s",
                  err.text);
    return text;
}

START_TEST(a_child_has_our_environment)
{
    char *text = environment_of_child(NULL);
    ck_assert_ptr_nonnull(strstr(text, "GIMBAL_TLS=/certificates\n"));
    ck_assert_ptr_nonnull(strstr(text, "GIMBAL_ADDRESS=tcp://127.0.0.1:1\n"));
    free(text);
}
END_TEST

START_TEST(what_a_child_is_not_to_see_stays_ours)
{
    static const char *const names[] = {"GIMBAL_TLS", "GIMBAL_ADDRESS", "GIMBAL_NONE", NULL};
    const char *tls = getenv("GIMBAL_TLS"), *address = getenv("GIMBAL_ADDRESS");
    char *text = environment_of_child(names);
    ck_assert_ptr_null(strstr(text, "GIMBAL_TLS="));
    ck_assert_ptr_null(strstr(text, "GIMBAL_ADDRESS="));
    ck_assert_ptr_nonnull(strstr(text, "GIMBAL_TLS_MORE=kept\n"));
    ck_assert_ptr_nonnull(strstr(text, "PATH="));
    /* the very same: nobody took them out meanwhile */
    ck_assert_ptr_eq(getenv("GIMBAL_TLS"), tls);
    ck_assert_ptr_eq(getenv("GIMBAL_ADDRESS"), address);
    free(text);
}
END_TEST

int main(int argc, char **argv)
{
    process_shim(argc, argv);
    TCase *tcase = tcase_create("child");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_child_has_our_environment);
    tcase_add_test(tcase, what_a_child_is_not_to_see_stays_ours);
    return suite_run("child", tcase, NULL);
}
