/* test_ranks.c - how ranks begin, and how they are stopped, in virtual time. */
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

START_TEST(a_repeated_assignment_is_answered_and_not_started_again)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(it.actions.count, 0); /* its executor is not ready yet */
    executor_ready(&it, rank);
    ck_assert_uint_eq(want_told(&it, MESSAGE_READY), rank);
    answer_told(&it, MESSAGE_READY, rank, RPC_OK);
    done(&it);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_READY), rank);
    answer_told(&it, MESSAGE_READY, rank, RPC_OK);
    rank_gone(&it, rank, "left");
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_OK);
    done(&it);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
}
END_TEST

START_TEST(what_ended_in_an_older_term_may_have_the_name_of_something_new)
{
    uint64_t taken = start_rank(&it, "job-1", 1);
    rank_gone(&it, taken, "left");
    answer_told(&it, MESSAGE_STOPPED, taken, RPC_OK);
    uint64_t untold = start_rank(&it, "job-2", 1);
    lose_heartbeat(&it);
    rank_gone(&it, untold, "left");
    come_back(&it, 2);
    ck_assert_ptr_null(supervisor_rank(it.supervisor, taken));
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), untold);
    done(&it);
    start_rank(&it, "job-1", 1);
    assign(&it, "job-2", 1, 0, 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0); /* its end is being told */
}
END_TEST

START_TEST(an_assignment_of_an_older_epoch_is_ignored)
{
    start_rank(&it, "job-1", 5);
    assign(&it, "job-1", 4, 0, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    ck_assert_int_eq(want(&it, SUPERVISOR_LOG)->level, LOG_WARN);
    ck_assert_uint_eq(supervisor_rank_count(it.supervisor), 1);
}
END_TEST

START_TEST(an_assignment_of_a_new_term_counts_whatever_its_epoch_is)
{
    uint64_t orphan = start_rank(&it, "job-1", 5);
    lose_heartbeat(&it);
    come_back(&it, 2);
    done(&it);
    assign(&it, "job-1", 4, 0, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, orphan);
    rank_gone(&it, orphan, "was killed");
    ck_assert_str_eq(rank_of(&it, orphan)->reason, "epoch 4 has begun");
}
END_TEST

START_TEST(an_assignment_to_no_device_of_ours_is_a_fault)
{
    assign(&it, "job-1", 1, 0, DEVICES);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    const struct rank *rank = rank_of(&it, want_told(&it, MESSAGE_STOPPED));
    ck_assert_int_eq(rank->cause, CAUSE(FAULT));
    ck_assert_str_eq(rank->reason, "node 'node-a' has no device 2: it offers 2");
}
END_TEST

START_TEST(a_new_epoch_waits_until_the_old_one_has_left_its_device)
{
    uint64_t old = start_rank(&it, "job-1", 1);
    assign(&it, "job-1", 2, 0, 0);
    assign(&it, "job-1", 2, 1, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 1); /* on device 1 */
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, old);
    done(&it);
    rank_gone(&it, old, "was killed by signal 15");
    const struct rank *rank = rank_of(&it, want(&it, SUPERVISOR_START)->rank);
    ck_assert_uint_eq(rank->epoch, 2);
    ck_assert_uint_eq(rank->device_index, 0);
    ck_assert_int_eq(rank_of(&it, old)->cause, CAUSE(QUIESCED));
}
END_TEST

START_TEST(a_rank_that_waits_is_cancelled_without_ever_starting)
{
    uint64_t old = start_rank(&it, "job-1", 1);
    assign(&it, "job-2", 1, 0, 0);
    done(&it);
    cancel(&it, "job-2", 1);
    ck_assert_int_eq(rank_of(&it, want_told(&it, MESSAGE_STOPPED))->cause, CAUSE(CANCELLED));
    rank_gone(&it, old, "left");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
}
END_TEST

START_TEST(a_rank_that_is_cancelled_and_never_came_is_reported_once)
{
    uint64_t known = start_rank(&it, "job-1", 1);
    done(&it);
    cancel_rank(&it, "job-1", 1, 0);
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0); /* it is here, and being stopped */
    cancel_rank(&it, "job-2", 3, 7);
    const struct rank *rank = rank_of(&it, want_told(&it, MESSAGE_STOPPED));
    ck_assert_str_eq(rank->job, "job-2");
    ck_assert_uint_eq(rank->epoch, 3);
    ck_assert_uint_eq(rank->rank, 7);
    ck_assert_int_eq(rank->cause, CAUSE(CANCELLED));
    done(&it);
    cancel_rank(&it, "job-2", 3, 7);
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
    ck_assert_ptr_nonnull(rank_of(&it, known));
}
END_TEST

START_TEST(a_cancelled_executor_gets_two_seconds_and_is_then_killed_once)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    cancel(&it, "job-1", 0); /* of an older epoch */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    cancel(&it, "job-1", 1);
    cancel(&it, "job-1", 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 1);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    done(&it);
    advance(&it, SUPERVISOR_PATIENCE_MS - 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    advance(&it, 10000);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 1);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(CANCELLED));
    ck_assert_str_eq(rank_of(&it, rank)->reason, "asked for");
}
END_TEST

#define LEFT "the executor left; its last lines: oh"

/* What is said of an executor by itself, by who asks it to stop and by how its process ends, and
 * what counts. */
static const struct {
    const char *name;
    int said;   /* a cause; -1: it says nothing */
    bool asked; /* to stop, before that */
    bool struck, for_memory;
    int cause;
    const char *reason;
} endings[] = {
    {"says nothing", -1, false, false, false, CAUSE(FAULT), LEFT},
    {"killed", -1, false, true, false, CAUSE(FAULT), LEFT},
    {"killed for memory", -1, false, true, true, CAUSE(HOST_MEMORY), LEFT},
    {"fault", CAUSE(FAULT), false, false, false, CAUSE(FAULT), "said"},
    {"fault, killed", CAUSE(FAULT), false, true, false, CAUSE(FAULT), "said"},
    {"out of memory", CAUSE(OUT_OF_MEMORY), false, false, false, CAUSE(OUT_OF_MEMORY), "said"},
    {"done", CAUSE(DONE), false, false, false, CAUSE(DONE), "said"},
    {"done, killed for memory", CAUSE(DONE), false, true, true, CAUSE(DONE), "said"},
    {"asked", -1, true, false, false, CAUSE(CANCELLED), "asked for"},
    {"asked, killed", -1, true, true, false, CAUSE(FAULT), LEFT},
    {"asked, killed for memory", -1, true, true, true, CAUSE(HOST_MEMORY), LEFT},
    {"asked, fault", CAUSE(FAULT), true, false, false, CAUSE(FAULT), "said"},
    {"asked, out of memory", CAUSE(OUT_OF_MEMORY), true, false, false, CAUSE(OUT_OF_MEMORY),
     "said"},
    {"asked, peer lost", CAUSE(PEER_LOST), true, false, false, CAUSE(CANCELLED), "asked for"},
    {"asked, peer lost, killed", CAUSE(PEER_LOST), true, true, false, CAUSE(CANCELLED),
     "asked for"},
    {"asked, done", CAUSE(DONE), true, false, false, CAUSE(DONE), "said"},
};

START_TEST(why_an_executor_ended_is_the_first_cause)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    if (endings[_i].asked)
        cancel(&it, "job-1", 1);
    if (endings[_i].said >= 0)
        executor_stopped(&it, rank, (Gimbal__StoppedRequest__Cause)endings[_i].said, "said", 9,
                         false);
    const struct executor_end end = {"left", "oh\xe2\x82" /* cut in a character */,
                                     endings[_i].struck, endings[_i].for_memory};
    supervisor_executor_gone(it.supervisor, rank, &end, it.now_ms, &it.actions);
    ck_assert_msg((int)rank_of(&it, rank)->cause == endings[_i].cause, "%s", endings[_i].name);
    ck_assert_str_eq(rank_of(&it, rank)->reason, endings[_i].reason);
}
END_TEST

START_TEST(an_executor_that_is_done_but_does_not_leave_is_killed)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_stopped(&it, rank, CAUSE(DONE), "", 9, false);
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_SIGNAL), SUPERVISOR_PATIENCE_MS);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(DONE));
    ck_assert_uint_eq(rank_of(&it, rank)->step, 9);
}
END_TEST

START_TEST(go_is_passed_on_once)
{
    uint64_t rank = start_rank(&it, "job-1", 2);
    go(&it, "job-1", 1);
    go(&it, "job-2", 2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_GO), 0);
    go(&it, "job-1", 2);
    go(&it, "job-1", 2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_GO), 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_GO)->rank, rank);
}
END_TEST

START_TEST(a_stopping_worker_stops_reports_and_quits)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    supervisor_terminate(it.supervisor, it.now_ms, &it.actions);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    assign(&it, "job-2", 1, 0, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    answer_told(&it, MESSAGE_STOPPED, want_told(&it, MESSAGE_STOPPED), RPC_OK);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIT), 0);
    rank_gone(&it, rank, "was killed by signal 15");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIT), 0);
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_OK);
    ck_assert_int_eq(want(&it, SUPERVISOR_QUIT)->status, 0);
}
END_TEST

START_TEST(a_stopping_worker_does_not_wait_for_ever_for_its_coordinator)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    lose_heartbeat(&it);
    supervisor_terminate(it.supervisor, it.now_ms, &it.actions);
    rank_gone(&it, rank, "was killed by signal 15");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIT), 0);
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_QUIT), SUPERVISOR_FAREWELL_MS);
}
END_TEST

SUITE(supervisor_ranks)
{
    TCase *tcase = tcase_create("ranks");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_repeated_assignment_is_answered_and_not_started_again);
    tcase_add_test(tcase, what_ended_in_an_older_term_may_have_the_name_of_something_new);
    tcase_add_test(tcase, an_assignment_of_an_older_epoch_is_ignored);
    tcase_add_test(tcase, an_assignment_of_a_new_term_counts_whatever_its_epoch_is);
    tcase_add_test(tcase, an_assignment_to_no_device_of_ours_is_a_fault);
    tcase_add_test(tcase, a_new_epoch_waits_until_the_old_one_has_left_its_device);
    tcase_add_test(tcase, a_rank_that_waits_is_cancelled_without_ever_starting);
    tcase_add_test(tcase, a_rank_that_is_cancelled_and_never_came_is_reported_once);
    tcase_add_test(tcase, a_cancelled_executor_gets_two_seconds_and_is_then_killed_once);
    tcase_add_loop_test(tcase, why_an_executor_ended_is_the_first_cause, 0,
                        sizeof endings / sizeof *endings);
    tcase_add_test(tcase, an_executor_that_is_done_but_does_not_leave_is_killed);
    tcase_add_test(tcase, go_is_passed_on_once);
    tcase_add_test(tcase, a_stopping_worker_stops_reports_and_quits);
    tcase_add_test(tcase, a_stopping_worker_does_not_wait_for_ever_for_its_coordinator);
    return suite_run("supervisor ranks", tcase, NULL);
}
