/* test_reach.c - ports with somebody, with nobody, and with no answer. */
#include "common/doctor/reach.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct error err;

/* A port of loopback that is taken; *fd is to be closed. */
static uint16_t take_port(int *fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(*fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(*fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

START_TEST(a_machine_answers_whether_anybody_listens_or_not)
{
    struct reach reach;
    int fd;
    uint16_t port = take_port(&fd);
    ck_assert_msg(reach_port("127.0.0.1", port, 10000, &reach, &err) == 0, "%s", err.text);
    ck_assert(!reach.listens);
    ck_assert_double_gt(reach.seconds, 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_msg(reach_port("[127.0.0.1]", port, 10000, &reach, &err) == 0, "%s", err.text);
    ck_assert(reach.listens);
    close(fd);
}
END_TEST

/* A queue of connections that is full drops what comes. */
START_TEST(what_is_dropped_is_not_waited_for_longer_than_told)
{
    struct reach reach;
    int fd, first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint16_t port = take_port(&fd);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(connect(first, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(reach_port("127.0.0.1", port, 20, &reach, &err), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.text, ": nothing comes back"));
    close(first);
    close(fd);
}
END_TEST

START_TEST(a_name_that_nobody_has_is_told)
{
    struct reach reach;
    ck_assert_int_eq(reach_port("node.invalid", 7070, 10000, &reach, &err), -EHOSTUNREACH);
    ck_assert_ptr_nonnull(strstr(err.text, "host 'node.invalid': "));
}
END_TEST

SUITE(reach)
{
    TCase *tcase = tcase_create("reach");
    tcase_add_test(tcase, a_machine_answers_whether_anybody_listens_or_not);
    tcase_add_test(tcase, what_is_dropped_is_not_waited_for_longer_than_told);
    tcase_add_test(tcase, a_name_that_nobody_has_is_told);
    return suite_run("reach", tcase, NULL);
}
