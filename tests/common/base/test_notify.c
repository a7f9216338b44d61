/* test_notify.c - what a service manager is told, over a socket as its own. */
#include "common/base/notify.h"
#include "tests/support/manager.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct notify notify;

static void open_notify(void)
{
    struct error err = {""};
    ck_assert_msg(notify_open(&notify, &err) == 0, "%s", err.text);
}

START_TEST(a_manager_is_told_at_a_path_and_in_the_abstract_namespace)
{
    struct manager manager;
    manager_open(&manager, _i == 1, 0);
    open_notify();
    notify_status(&notify, "listens at %s", "tcp://127.0.0.1:7070");
    notify_ready(&notify);
    notify_stopping(&notify);
    ck_assert_str_eq(manager_next(&manager), "STATUS=listens at tcp://127.0.0.1:7070");
    ck_assert_str_eq(manager_next(&manager), "READY=1");
    ck_assert_str_eq(manager_next(&manager), "STOPPING=1");
    notify_close(&notify);
    manager_close(&manager);
}
END_TEST

START_TEST(a_status_is_one_line_and_the_same_is_told_once)
{
    struct manager manager;
    manager_open(&manager, true, 0);
    open_notify();
    notify_status(&notify, "refused:\nREADY=1");
    notify_status(&notify, "refused:\nREADY=1");
    ck_assert_str_eq(manager_next(&manager), "STATUS=refused: READY=1");
    ck_assert(manager_is_quiet(&manager));
    notify_close(&notify);
    manager_close(&manager);
}
END_TEST

START_TEST(signs_of_life_come_at_half_the_time_and_only_from_the_loop)
{
    struct manager manager;
    manager_open(&manager, true, 3000000);
    open_notify();
    ck_assert_int_eq(notify_timeout_ms(&notify, -1, 500), 0);
    notify_alive(&notify, 500);
    ck_assert_str_eq(manager_next(&manager), "WATCHDOG=1");
    ck_assert_int_eq(notify_timeout_ms(&notify, -1, 600), 1400);
    ck_assert_int_eq(notify_timeout_ms(&notify, 100, 600), 100);
    notify_alive(&notify, 1999);
    ck_assert(manager_is_quiet(&manager));
    notify_alive(&notify, 2000);
    ck_assert_str_eq(manager_next(&manager), "WATCHDOG=1");
    notify_close(&notify);
    manager_close(&manager);
}
END_TEST

START_TEST(a_watchdog_of_another_process_is_not_fed)
{
    struct manager manager;
    char pid[32];
    manager_open(&manager, true, 3000000);
    snprintf(pid, sizeof pid, "%d", (int)getppid());
    setenv("WATCHDOG_PID", pid, 1);
    open_notify();
    ck_assert_int_eq(notify_timeout_ms(&notify, -1, 500), -1);
    notify_alive(&notify, 500);
    ck_assert(manager_is_quiet(&manager));
    notify_close(&notify);
    manager_close(&manager);
}
END_TEST

START_TEST(children_do_not_see_the_socket)
{
    struct manager manager;
    manager_open(&manager, true, 3000000);
    open_notify();
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    notify_close(&notify);
    manager_close(&manager);
}
END_TEST

START_TEST(without_a_manager_nothing_is_done)
{
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "1000000", 1);
    open_notify();
    notify_ready(&notify);
    notify_status(&notify, "nobody hears this");
    notify_alive(&notify, 1);
    ck_assert_int_eq(notify_timeout_ms(&notify, -1, 1), -1);
    notify_close(&notify);
}
END_TEST

START_TEST(a_manager_that_is_gone_harms_nobody)
{
    struct manager manager;
    manager_open(&manager, true, 3000000);
    open_notify();
    manager_close(&manager);
    notify_ready(&notify);
    notify_alive(&notify, 1);
    notify_close(&notify);
}
END_TEST

static const struct {
    const char *socket, *usec, *words;
} refusals[] = {
    {"socket", NULL, "NOTIFY_SOCKET: 'socket' is neither a path nor @NAME"},
    {"@", NULL, "NOTIFY_SOCKET: '@' is neither a path nor @NAME"},
    {"/proc/nonexistent/socket", NULL, "NOTIFY_SOCKET: '/proc/nonexistent/socket': No such file"},
    {"/proc/nonexistent/socket", "soon", "WATCHDOG_USEC: 'soon' is no whole number"},
    {"/proc/nonexistent/socket", "-1", "WATCHDOG_USEC: '-1' is no whole number"},
    {"/proc/nonexistent/socket", "1999", "WATCHDOG_USEC: less than 2000 cannot be kept"},
};

START_TEST(a_wrong_variable_is_named)
{
    struct error err = {""};
    setenv("NOTIFY_SOCKET", refusals[_i].socket, 1);
    if (refusals[_i].usec)
        setenv("WATCHDOG_USEC", refusals[_i].usec, 1);
    ck_assert_int_eq(notify_open(&notify, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, refusals[_i].words) == err.text, "%s", err.text);
    notify_ready(&notify);
    notify_close(&notify);
}
END_TEST

SUITE(notify)
{
    TCase *tcase = tcase_create("notify");
    tcase_add_loop_test(tcase, a_manager_is_told_at_a_path_and_in_the_abstract_namespace, 0, 2);
    tcase_add_test(tcase, a_status_is_one_line_and_the_same_is_told_once);
    tcase_add_test(tcase, signs_of_life_come_at_half_the_time_and_only_from_the_loop);
    tcase_add_test(tcase, a_watchdog_of_another_process_is_not_fed);
    tcase_add_test(tcase, children_do_not_see_the_socket);
    tcase_add_test(tcase, without_a_manager_nothing_is_done);
    tcase_add_test(tcase, a_manager_that_is_gone_harms_nobody);
    tcase_add_loop_test(tcase, a_wrong_variable_is_named, 0,
                        (int)(sizeof refusals / sizeof *refusals));
    return suite_run("notify", tcase, NULL);
}
