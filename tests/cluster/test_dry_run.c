/* test_dry_run.c - gimbal-worker --dry-run: a node's settings are tried where they are to hold; and
 * --check: whether they can hold at all. */
#include "tests/cluster/command.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct command command;
static char state[32];

static void set_up(void)
{
    strcpy(state, "/tmp/gimbal-dry-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(state));
}

/* It has kept nothing. */
static void tear_down(void)
{
    ck_assert_int_eq(rmdir(state), 0);
}

/* With one more setting: it leaves with this status, and says these words. */
static void asks(const char *how, const char *flag, const char *value, int status,
                 const char *words)
{
    command_start(&command,
                  (const char *const[]){WORKER, "--name", "node-a", how, "--executor",
                                        FAKE_EXECUTOR, "--state", state, flag, value, NULL});
    int left_with = command_finish(&command);
    ck_assert_msg(left_with == status && strstr(command.err, words) != NULL,
                  "%s %s: %d, not %d with '%s': %s", flag, value, left_with, status, words,
                  command.err);
}

static void tries(const char *flag, const char *value, int status, const char *words)
{
    asks("--dry-run", flag, value, status, words);
}

START_TEST(what_a_node_would_offer_is_said)
{
    tries("--devices", "2", 0, "node-a: 2 devices, ");
    tries("--devices", "1", 0, ", at 127.0.0.1; nothing is measured");
    tries("--host-address", "127.0.0.2", 0, ", at 127.0.0.2; nothing is measured");
}
END_TEST

START_TEST(what_does_not_fit_the_machine_is_refused)
{
    tries("--devices", "65", 78, "write 1 to 64, to divide the cores into that many");
    tries("--devices", "abacus", 69, "devices: there is no 'abacus' here");
    tries("--cpuset", "100000", 78, "cpuset '100000' is not");
    tries("--memory", "900TiB", 78, "memory: 900.0 TiB is more than the ");
    tries("--host-address", "node-a", 78, "host_address: 'node-a' is no IP address");
    tries("--host-address", "192.0.2.9", 78, "host_address: ranks cannot listen at '192.0.2.9'");
    tries("--executor", "/proc/nowhere/executor", 69,
          "/proc/nowhere/executor: No such file or directory");
    setenv("GIMBAL_COORDINATOR", "tls+tcp://127.0.0.1:7070", 1);
    tries("--tls", "/proc/nowhere", 78, "/proc/nowhere/");
}
END_TEST

START_TEST(settings_that_cannot_hold_are_refused_unseen)
{
    asks("--check", "--devices", "cuda", 0, ""); /* there may be some where it is to run */
    asks("--check", "--cpuset", "100000", 78, "cpuset '100000' is not within");
    asks("--check", "--devices", "abacus", 78, "'abacus' is no kind of device; known: cuda");
    asks("--check", "--executor", "/proc/nowhere/executor", 0, "");
    setenv("GIMBAL_COORDINATOR", "tls+tcp://127.0.0.1:7070", 1);
    asks("--check", "--tls", "/proc/nowhere", 78, "/proc/nowhere/tls.crt: No such file");
}
END_TEST

SUITE(dry_run)
{
    TCase *tcase = tcase_create("dry_run");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_a_node_would_offer_is_said);
    tcase_add_test(tcase, what_does_not_fit_the_machine_is_refused);
    tcase_add_test(tcase, settings_that_cannot_hold_are_refused_unseen);
    return suite_run("dry_run", tcase, NULL);
}
