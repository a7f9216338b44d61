/* test_leftovers.c - executors whose parent has gone. */
#include "coordinator/cli/leftovers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"

/* A grandchild of that name, whose parent is gone: it is ours now. */
static pid_t start_orphan(const char *name)
{
    int ends[2];
    pid_t orphan = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        orphan = fork();
        if (orphan == 0) {
            prctl(PR_SET_NAME, name);
            orphan = getpid();
            if (write(ends[1], &orphan, sizeof orphan) == sizeof orphan)
                pause();
        }
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &orphan, sizeof orphan), sizeof orphan);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    close(ends[0]);
    close(ends[1]);
    return orphan;
}

static bool is_listed(const char *left, pid_t orphan)
{
    char line[64];
    snprintf(line, sizeof line, "process %d, gimbal-executor\n", (int)orphan);
    return left && strstr(left, line);
}

START_TEST(an_executor_that_a_collector_has_is_left_over)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t executor = start_orphan("gimbal-executor"), other = start_orphan("gimbal-worker");
    char *left = leftovers_orphans();
    ck_assert(!is_listed(left, executor)); /* we are somebody who watches it */
    free(left);
    prctl(PR_SET_NAME, "systemd");
    left = leftovers_orphans();
    ck_assert(is_listed(left, executor));
    ck_assert(!left || !strstr(left, "gimbal-worker"));
    free(left);
    kill(executor, SIGKILL);
    kill(other, SIGKILL);
    left = leftovers_orphans(); /* it has ended, and nobody has waited for it */
    ck_assert(!is_listed(left, executor));
    free(left);
    ck_assert_int_gt(waitpid(executor, NULL, 0), 0);
    ck_assert_int_gt(waitpid(other, NULL, 0), 0);
}
END_TEST

SUITE(leftovers)
{
    TCase *tcase = tcase_create("leftovers");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, an_executor_that_a_collector_has_is_left_over);
    return suite_run("leftovers", tcase, NULL);
}
