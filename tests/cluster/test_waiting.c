/* test_waiting.c - `gimbal submit --wait` at a coordinator that answers late. */
#include "common/base/file.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char job[] = "apiVersion: gimbal/v1\n"
                          "name: small\n"
                          "model: {family: gpt, layers: 2, hidden: 32, heads: 2, seq: 32}\n"
                          "data: {text: [/proc/nowhere]}\n"
                          "train: {steps: 2, global_batch: 8, lr: 3.0e-3}\n";

static pid_t stop_for(pid_t process, unsigned seconds)
{
    ck_assert_int_eq(kill(process, SIGSTOP), 0);
    pid_t waker = fork();
    if (waker == 0) {
        sleep(seconds);
        kill(process, SIGCONT);
        _exit(0);
    }
    return waker;
}

/* What the calls have taken of it is not given again to the following. */
START_TEST(a_time_to_wait_for_a_job_is_one_from_the_first_call_on)
{
    static struct command command;
    struct cluster cluster;
    struct timespec began, ended;
    char path[128];
    cluster_start(&cluster, NULL);
    snprintf(path, sizeof path, "%s.yaml", cluster.directory);
    ck_assert_int_eq(file_write(path, job, 0600, NULL), 0);
    clock_gettime(CLOCK_MONOTONIC, &began);
    pid_t waker = stop_for(cluster.coordinator, 3);
    command_start(&command,
                  (const char *const[]){GIMBAL, "submit", "-f", path, "--wait", "--timeout",
                                        "3500ms", "--address", cluster.address, NULL});
    ck_assert_int_eq(command_finish(&command), 124);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    ck_assert_str_eq(command.out, "j-1\n");
    ck_assert_ptr_nonnull(strstr(command.err, "gimbal submit: gave up after 3.5 s\n"));
    ck_assert_int_lt(ended.tv_sec - began.tv_sec, 6);
    ck_assert_int_eq(waitpid(waker, NULL, 0), waker);
    unlink(path);
    cluster_stop(&cluster);
}
END_TEST

SUITE(waiting)
{
    TCase *tcase = tcase_create("waiting");
    tcase_set_timeout(tcase, 20);
    tcase_add_test(tcase, a_time_to_wait_for_a_job_is_one_from_the_first_call_on);
    return suite_run("waiting", tcase, NULL);
}
