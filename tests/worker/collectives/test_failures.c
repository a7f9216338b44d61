/* test_failures.c - what a library says when a peer is late, gone or of another opinion, and when
 * it is told to stop. */
#include "tests/worker/collectives/cases.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 20
#define SHORT_S 0.3

#define ck_assert_says(err, words) ck_assert_msg(strstr((err).text, words), "'%s'", (err).text)

static void late_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    struct error err;
    float data[8] = {0};
    if (rank->rank == 0) {
        ck_assert_int_eq(
            rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, &err),
            -ETIMEDOUT);
        ck_assert_says(err, "all_reduce");
        ck_assert_says(err, "{0,1}");
        ck_assert_says(err, "rank 1");
    }
    pthread_barrier_wait(rank->barrier);
}

START_TEST(a_member_that_does_not_come_is_named)
{
    test_ranks_run(collective_libraries[_i], 2, SHORT_S, late_body, NULL);
}
END_TEST

static void silent_body(struct test_rank *rank)
{
    struct error err;
    float data[8] = {0};
    if (rank->rank == 0) {
        ck_assert_int_eq(rank->library->receive(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &err),
                         -ETIMEDOUT);
        ck_assert_says(err, "receive from rank 1, tag 7");
    }
    pthread_barrier_wait(rank->barrier);
}

START_TEST(a_message_that_does_not_come_is_named)
{
    test_ranks_run(collective_libraries[_i], 2, SHORT_S, silent_body, NULL);
}
END_TEST

static void deaf_body(struct test_rank *rank)
{
    struct error err;
    float data[8] = {0};
    if (rank->rank == 0) {
        struct fabric_request *request;
        ck_assert_int_eq(
            rank->library->send(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &request, NULL), 0);
        ck_assert_int_eq(rank->library->wait(rank->fabric, request, &err), -ETIMEDOUT);
        ck_assert_says(err, "send to rank 1, tag 7");
    }
    pthread_barrier_wait(rank->barrier);
}

START_TEST(a_message_that_is_not_received_is_named)
{
    test_ranks_run(collective_libraries[_i], 2, SHORT_S, deaf_body, NULL);
}
END_TEST

static void leave(struct test_rank *rank)
{
    rank->library->close(rank->fabric);
    rank->fabric = NULL;
}

/* Over connections, who hears first hangs up on the others: they may name him. */
static void gone_member_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    struct error err;
    float data[8] = {0};
    atomic_int *named = rank->argument;
    ck_assert_int_eq(rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, NULL),
                     0);
    if (rank->rank == 1) {
        leave(rank);
        pthread_barrier_wait(rank->barrier);
        return;
    }
    ck_assert_int_eq(rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, &err),
                     -ECONNRESET);
    ck_assert_says(err, "all_reduce in group {0,1,2}: rank ");
    ck_assert_says(err, " is gone");
    if (strstr(err.text, "rank 1 is gone"))
        atomic_fetch_add(named, 1);
    pthread_barrier_wait(rank->barrier);
    ck_assert_int_ge(atomic_load(named), 1);
}

START_TEST(a_member_that_left_ends_the_call_at_once)
{
    atomic_int named = 0;
    test_ranks_run(collective_libraries[_i], 3, LIMIT_S, gone_member_body, &named);
}
END_TEST

static void gone_peer_body(struct test_rank *rank)
{
    struct error err;
    float data[8] = {0};
    if (rank->rank == 1)
        leave(rank);
    else {
        ck_assert_int_eq(rank->library->receive(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &err),
                         -ECONNRESET);
        ck_assert_says(err, "receive from rank 1, tag 7");
    }
}

START_TEST(a_peer_that_left_ends_a_receive_at_once)
{
    test_ranks_run(collective_libraries[_i], 2, LIMIT_S, gone_peer_body, NULL);
}
END_TEST

/* ---- abort ---- */

struct aborter {
    struct test_rank *rank;
    pid_t blocked; /* the thread that has to be asleep first */
};

static void *abort_run(void *context)
{
    struct aborter *aborter = context;
    while (!thread_sleeps(getpid(), aborter->blocked))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    aborter->rank->library->abort(aborter->rank->fabric);
    return NULL;
}

static void abort_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    struct error err;
    float data[8] = {0};
    struct fabric_request *request;
    if (rank->rank == 0) {
        struct aborter aborter = {rank, gettid()};
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, abort_run, &aborter), 0);
        if (*(int *)rank->argument)
            ck_assert_int_eq(rank->library->receive(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &err),
                             -ECANCELED);
        else
            ck_assert_int_eq(
                rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, &err),
                -ECANCELED);
        pthread_join(thread, NULL);
        ck_assert_says(err, *(int *)rank->argument ? "receive from rank 1" : "all_reduce");
        ck_assert_says(err, "aborted");
        /* And whatever comes later. */
        ck_assert_int_eq(
            rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, &err),
            -ECANCELED);
        ck_assert_int_eq(rank->library->receive(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &err),
                         -ECANCELED);
        ck_assert_int_eq(
            rank->library->send(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &request, NULL),
            -ECANCELED);
    }
    pthread_barrier_wait(rank->barrier);
}

START_TEST(abort_wakes_a_blocked_call)
{
    for (int message = 0; message < 2; message++)
        test_ranks_run(collective_libraries[_i], 2, LIMIT_S, abort_body, &message);
}
END_TEST

TCase *failure_cases(int rows)
{
    TCase *tcase = tcase_create("failures");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_member_that_does_not_come_is_named, 0, rows);
    tcase_add_loop_test(tcase, a_message_that_does_not_come_is_named, 0, rows);
    tcase_add_loop_test(tcase, a_message_that_is_not_received_is_named, 0, rows);
    tcase_add_loop_test(tcase, a_member_that_left_ends_the_call_at_once, 0, rows);
    tcase_add_loop_test(tcase, a_peer_that_left_ends_a_receive_at_once, 0, rows);
    tcase_add_loop_test(tcase, abort_wakes_a_blocked_call, 0, rows);
    return tcase;
}
