/* test_link.c - what a worker does about its coordinator, in virtual time. */
#include "common/rpc/client.h"
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <signal.h>

#define CAUSE(name) GIMBAL__STOPPED_REQUEST__CAUSE__##name

static struct supervised it;

static void tear_down(void)
{
    supervised_close(&it);
}

static void set_up(void)
{
    supervised_open_up(&it);
}

static void heartbeat(enum rpc_status status, uint64_t revision)
{
    advance_to(&it, SUPERVISOR_HEARTBEAT);
    supervisor_heartbeat_answered(it.supervisor, status, "trouble", revision, it.now_ms,
                                  &it.actions);
}

static void ready(uint64_t rank)
{
    executor_ready(&it, rank);
}

START_TEST(a_worker_says_hello_reports_and_watches_from_the_start)
{
    struct supervised fresh;
    supervised_open(&fresh, 1);
    ck_assert_uint_eq(fresh.actions.count, 1);
    answer_hello(&fresh, 7);
    ck_assert_uint_eq(wanted(&fresh, SUPERVISOR_WATCH), 0);
    answer_report(&fresh, RPC_OK);
    ck_assert_uint_eq(want(&fresh, SUPERVISOR_WATCH)->revision, 0);
    supervised_close(&fresh);
}
END_TEST

START_TEST(a_person_is_told_how_the_link_is)
{
    char words[256];
    struct supervised fresh;
    supervised_open(&fresh, 1);
    ck_assert_str_eq(supervisor_describe(fresh.supervisor, words, sizeof words),
                     "node 'node-a', executors: 0; looking for the coordinator");
    supervisor_hello_answered(fresh.supervisor, RPC_UNAVAILABLE, "nobody there", 0, fresh.now_ms,
                              &fresh.actions);
    ck_assert_str_eq(supervisor_describe(fresh.supervisor, words, sizeof words),
                     "node 'node-a', executors: 0; nobody there");
    supervised_close(&fresh);

    start_rank(&it, "job-1", 1);
    ck_assert_str_eq(supervisor_describe(it.supervisor, words, sizeof words),
                     "node 'node-a', executors: 1; registered");
}
END_TEST

START_TEST(heartbeats_come_as_often_as_the_reply_says_and_one_at_a_time)
{
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_HEARTBEAT), HEARTBEAT_MS);
    advance(&it, 10 * HEARTBEAT_MS);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_HEARTBEAT), 1);
    heartbeat(RPC_OK, 0);
    done(&it);
    ck_assert_uint_le(advance_to(&it, SUPERVISOR_HEARTBEAT), HEARTBEAT_MS);
}
END_TEST

START_TEST(an_absent_coordinator_is_called_after_growing_and_jittered_pauses)
{
    struct supervised a, b;
    unsigned differ = 0;
    supervised_open(&a, 1);
    supervised_open(&b, 2);
    for (unsigned attempt = 0; attempt < 20; attempt++) {
        uint64_t pause[2], most = rpc_backoff_ms(attempt, 0);
        struct supervised *both[] = {&a, &b};
        for (int i = 0; i < 2; i++) {
            supervisor_hello_answered(both[i]->supervisor, RPC_UNAVAILABLE, "nobody there", 0,
                                      both[i]->now_ms, &both[i]->actions);
            ck_assert_uint_eq(wanted(both[i], SUPERVISOR_LOG), attempt == 0); /* said once */
            done(both[i]);
            pause[i] = advance_to(both[i], SUPERVISOR_HELLO);
            ck_assert_uint_le(pause[i], most);
            ck_assert_uint_ge(pause[i], most / 2);
        }
        differ += pause[0] != pause[1];
    }
    ck_assert_uint_ge(differ, 10);
    supervised_close(&a);
    supervised_close(&b);
}
END_TEST

START_TEST(a_lost_coordinator_stops_no_executor)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    lose_heartbeat(&it);
    for (unsigned i = 0; i < 100; i++) {
        advance_to(&it, SUPERVISOR_HELLO);
        ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
        done(&it);
        supervisor_hello_answered(it.supervisor, RPC_UNAVAILABLE, "gone", 0, it.now_ms,
                                  &it.actions);
    }
    come_back(&it, 2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    ck_assert_int_eq(rank_of(&it, rank)->state, RANK_RUNNING);
}
END_TEST

START_TEST(the_watch_goes_on_in_its_term_and_starts_over_in_a_new_one)
{
    start_rank(&it, "job-1", 1);
    ck_assert_uint_eq(it.revision, 1);
    lose_heartbeat(&it);
    come_back(&it, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_WATCH), 0); /* it runs */

    supervisor_watch_broken(it.supervisor, RPC_INTERNAL, "broken", it.now_ms, &it.actions);
    done(&it);
    come_back(&it, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_WATCH)->revision, 1);

    done(&it);
    lose_heartbeat(&it);
    come_back(&it, 2);
    ck_assert_uint_eq(want(&it, SUPERVISOR_WATCH)->revision, 0);
}
END_TEST

START_TEST(a_poll_that_was_lost_is_asked_again_after_two_heartbeats)
{
    heartbeat(RPC_OK, 3);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_WATCH), 0);
    start_rank(&it, "job-1", 1); /* it was only late */
    done(&it);
    heartbeat(RPC_OK, 3);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_WATCH), 0);
    done(&it);
    heartbeat(RPC_OK, 3);
    ck_assert_uint_eq(want(&it, SUPERVISOR_WATCH)->revision, 1);
    done(&it);
    heartbeat(RPC_OK, 1);
    heartbeat(RPC_OK, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_WATCH), 0);
}
END_TEST

START_TEST(a_heartbeat_of_an_ended_term_does_not_disturb_the_new_one)
{
    advance_to(&it, SUPERVISOR_HEARTBEAT);
    supervisor_watch_broken(it.supervisor, RPC_FAILED_PRECONDITION, "the term has ended", it.now_ms,
                            &it.actions);
    come_back(&it, 2);
    done(&it);
    /* The one that was sent in term 1. */
    supervisor_heartbeat_answered(it.supervisor, RPC_FAILED_PRECONDITION, "the term has ended", 0,
                                  it.now_ms, &it.actions);
    ck_assert_uint_le(advance_to(&it, SUPERVISOR_HEARTBEAT), HEARTBEAT_MS);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_HELLO), 0);
}
END_TEST

START_TEST(a_lost_instance_stops_its_executors_and_comes_back_as_a_new_one)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    ready(rank);
    heartbeat(RPC_FAILED_PRECONDITION, 0);
    done(&it);
    advance_to(&it, SUPERVISOR_HELLO);
    answer_hello(&it, 1);
    answer_report(&it, RPC_FAILED_PRECONDITION); /* it could be a new term */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_RECONNECT), 0);
    done(&it);
    advance_to(&it, SUPERVISOR_HELLO);
    answer_hello(&it, 1);
    answer_report(&it, RPC_FAILED_PRECONDITION);
    want(&it, SUPERVISOR_RECONNECT);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    done(&it);
    rank_gone(&it, rank, "was killed");
    come_back(&it, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_WATCH)->revision, 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(FAULT));
}
END_TEST

START_TEST(a_worker_whose_place_another_has_taken_leaves)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    ready(rank);
    heartbeat(RPC_ALREADY_EXISTS, 0);
    done(&it);
    advance_to(&it, SUPERVISOR_HELLO);
    answer_hello(&it, 1);
    answer_report(&it, RPC_ALREADY_EXISTS);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_RECONNECT), 0);
    ck_assert_str_eq(want(&it, SUPERVISOR_LOG)->text,
                     "another gimbal-worker named 'node-a' has taken its place: give one of the "
                     "two another --name");
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    done(&it);
    rank_gone(&it, rank, "was killed");
    advance_to(&it, SUPERVISOR_QUIT);
    ck_assert_int_eq(want(&it, SUPERVISOR_QUIT)->status, 78);
}
END_TEST

/* It waits until that one is gone. */
START_TEST(a_worker_that_finds_its_name_taken_asks_again)
{
    struct supervised fresh;
    supervised_open(&fresh, 1);
    answer_hello(&fresh, 1);
    answer_report(&fresh, RPC_ALREADY_EXISTS);
    ck_assert_uint_eq(wanted(&fresh, SUPERVISOR_QUIT), 0);
    done(&fresh);
    advance_to(&fresh, SUPERVISOR_HELLO);
    supervised_close(&fresh);
}
END_TEST

START_TEST(assignments_that_are_missing_make_the_worker_start_anew)
{
    supervisor_watch_broken(it.supervisor, RPC_OUT_OF_RANGE, "too far behind", it.now_ms,
                            &it.actions);
    want(&it, SUPERVISOR_RECONNECT);
}
END_TEST

START_TEST(a_worker_that_is_not_wanted_leaves)
{
    static const struct {
        enum rpc_status status;
        int exit_status;
    } rows[] = {{RPC_INVALID_ARGUMENT, 78}, {RPC_PERMISSION_DENIED, 77}, {RPC_UNAUTHENTICATED, 77}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct supervised fresh;
        supervised_open(&fresh, 1);
        answer_hello(&fresh, 1);
        answer_report(&fresh, rows[i].status);
        ck_assert_int_eq(want(&fresh, SUPERVISOR_QUIT)->status, rows[i].exit_status);
        supervised_close(&fresh);
    }
}
END_TEST

SUITE(supervisor_link)
{
    TCase *tcase = tcase_create("link");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_worker_says_hello_reports_and_watches_from_the_start);
    tcase_add_test(tcase, a_person_is_told_how_the_link_is);
    tcase_add_test(tcase, heartbeats_come_as_often_as_the_reply_says_and_one_at_a_time);
    tcase_add_test(tcase, an_absent_coordinator_is_called_after_growing_and_jittered_pauses);
    tcase_add_test(tcase, a_lost_coordinator_stops_no_executor);
    tcase_add_test(tcase, the_watch_goes_on_in_its_term_and_starts_over_in_a_new_one);
    tcase_add_test(tcase, a_poll_that_was_lost_is_asked_again_after_two_heartbeats);
    tcase_add_test(tcase, a_heartbeat_of_an_ended_term_does_not_disturb_the_new_one);
    tcase_add_test(tcase, a_lost_instance_stops_its_executors_and_comes_back_as_a_new_one);
    tcase_add_test(tcase, a_worker_whose_place_another_has_taken_leaves);
    tcase_add_test(tcase, a_worker_that_finds_its_name_taken_asks_again);
    tcase_add_test(tcase, assignments_that_are_missing_make_the_worker_start_anew);
    tcase_add_test(tcase, a_worker_that_is_not_wanted_leaves);
    return suite_run("supervisor link", tcase, NULL);
}
