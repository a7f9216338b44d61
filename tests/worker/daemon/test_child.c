/* test_child.c - what a child prints. */
#include "worker/daemon/child.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <string.h>
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

int main(void)
{
    TCase *tcase = tcase_create("child");
    tcase_add_test(tcase, output_without_an_end_does_not_hold_up_the_node);
    tcase_add_test(tcase, all_that_is_left_in_a_full_pipe_is_read);
    return suite_run("child", tcase, NULL);
}
