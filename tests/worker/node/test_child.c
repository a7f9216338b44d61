/* test_child.c - what a child prints, and how it looks: stopped, asleep, or computing. */
#include "worker/node/child.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct printing {
    int fd;
    size_t lines;
};

#define LINE "on and on\n"
#define LINES LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE

/* More than was read, unless the pipe is full: it is never empty. */
static void print_on(void *data, const char *line)
{
    struct printing *printing = data;
    ck_assert_str_eq(line, "on and on");
    printing->lines++;
    ck_assert_int_ne(write(printing->fd, LINES, strlen(LINES)), 0);
}

START_TEST(output_without_an_end_does_not_hold_up_the_node)
{
    int fds[2];
    struct child child = {0};
    ck_assert_int_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    child.output_fd = fds[0];
    struct printing printing = {.fd = fds[1]};
    print_on(&printing, "on and on");
    child_read_output(&child, print_on, &printing);
    ck_assert_uint_gt(printing.lines, 1000);
    size_t before = printing.lines;
    child_read_output(&child, print_on, &printing); /* nor is it forgotten */
    ck_assert_uint_gt(printing.lines, before);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(all_that_is_left_in_a_full_pipe_is_read)
{
    int fds[2], ignored = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct child child = {0};
    struct printing printing = {.fd = ignored};
    size_t written = 0;
    ck_assert_int_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    while (write(fds[1], LINE, strlen(LINE)) > 0)
        written++;
    close(fds[1]);
    child.output_fd = fds[0];
    child_read_output(&child, print_on, &printing);
    ck_assert_uint_eq(printing.lines, written);
    ck_assert_int_eq(child.output_fd, -1);
    close(ignored);
}
END_TEST

static pid_t pid;
static struct child_look seen;

static void start_one(bool computes)
{
    seen = (struct child_look){0};
    pid = check_fork();
    if (pid > 0)
        return;
    for (volatile unsigned long i = 0;; i++)
        if (!computes)
            pause();
}

static void end_it(void)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(one_that_sleeps_is_neither_stopped_nor_starved)
{
    start_one(false);
    child_look(&seen, pid, 1000);
    do /* it may still be on its way to sleep */
        child_look(&seen, pid, seen.at_ms + 1000);
    while (seen.starved);
    ck_assert(!seen.stopped);
    end_it();
}
END_TEST

START_TEST(one_that_is_stopped_is_until_it_goes_on)
{
    int status;
    start_one(false);
    kill(pid, SIGSTOP);
    waitpid(pid, &status, WUNTRACED);
    child_look(&seen, pid, 1000);
    ck_assert(seen.stopped && !seen.starved);
    kill(pid, SIGCONT);
    waitpid(pid, &status, WCONTINUED);
    child_look(&seen, pid, 2000);
    ck_assert(!seen.stopped);
    end_it();
    child_look(&seen, pid, 3000); /* it is gone */
    ck_assert(!seen.stopped && !seen.starved);
}
END_TEST

/* No time has passed for it between the two looks, if they say so. */
START_TEST(one_that_wants_to_compute_and_has_not_is_starved)
{
    start_one(true);
    child_look(&seen, pid, 1000);
    ck_assert(!seen.starved);
    child_look(&seen, pid, (uint64_t)1 << 40);
    ck_assert(seen.starved);
    seen.busy_ms = 0;
    seen.at_ms = ((uint64_t)1 << 40) - 1;
    while (seen.busy_ms == 0) { /* until it has had some */
        seen.at_ms = ((uint64_t)1 << 40) - 1;
        child_look(&seen, pid, (uint64_t)1 << 40);
    }
    ck_assert(!seen.starved);
    end_it();
}
END_TEST

SUITE(child)
{
    TCase *tcase = tcase_create("child");
    tcase_add_test(tcase, output_without_an_end_does_not_hold_up_the_node);
    tcase_add_test(tcase, all_that_is_left_in_a_full_pipe_is_read);
    TCase *look = tcase_create("look");
    tcase_add_test(look, one_that_sleeps_is_neither_stopped_nor_starved);
    tcase_add_test(look, one_that_is_stopped_is_until_it_goes_on);
    tcase_add_test(look, one_that_wants_to_compute_and_has_not_is_starved);
    return suite_run("child", tcase, look, NULL);
}
