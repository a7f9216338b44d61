/* test_ranks.c - what a worker does about its executors, in virtual time. */
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <check.h>
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

/* Through Hello and report again. */
static void come_back(uint64_t term)
{
    advance_to(&it, SUPERVISOR_HELLO);
    answer_hello(&it, term);
    answer_report(&it, RPC_OK);
}

static void ready(uint64_t rank)
{
    executor_ready(&it, rank);
}

static void answer_ready(uint64_t rank, enum rpc_status status)
{
    supervisor_ready_answered(it.supervisor, rank, status, "trouble", it.now_ms, &it.actions);
}

static void answer_stopped(uint64_t rank, enum rpc_status status)
{
    supervisor_stopped_answered(it.supervisor, rank, status, "trouble", it.now_ms, &it.actions);
}

static const struct rank *rank_of(uint64_t id)
{
    const struct rank *rank = supervisor_rank(it.supervisor, id);
    ck_assert_ptr_nonnull(rank);
    return rank;
}

static void answer_paused(uint64_t rank, enum rpc_status status)
{
    supervisor_paused_answered(it.supervisor, rank, status, "trouble", it.now_ms, &it.actions);
}

START_TEST(a_pause_is_passed_on_once_and_told_as_often_as_it_is_asked_for)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    pause_job(&it, "job-1", 1, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSE)->rank, rank);
    ck_assert_uint_eq(rank_of(rank)->pause, 1);
    done(&it);
    pause_job(&it, "job-1", 1, 1);
    pause_job(&it, "job-1", 2, 2);
    pause_job(&it, "job-2", 1, 2);
    ck_assert_uint_eq(it.actions.count, 0);
    supervisor_executor_paused(it.supervisor, rank, 1, 7, &it.actions);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSED)->rank, rank);
    ck_assert_uint_eq(rank_of(rank)->paused_step, 7);
    answer_paused(rank, RPC_OK);
    done(&it);
    pause_job(&it, "job-1", 1, 1); /* by a coordinator that has started again */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_PAUSE), 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSED)->rank, rank);
    answer_paused(rank, RPC_OK);
    done(&it);
    resume_job(&it, "job-1", 1, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_RESUME)->rank, rank);
    done(&it);
    resume_job(&it, "job-1", 1, 1);
    ck_assert_uint_eq(it.actions.count, 0);
}
END_TEST

START_TEST(a_pause_is_told_again_after_the_link_was_lost)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    pause_job(&it, "job-1", 1, 1);
    supervisor_executor_paused(it.supervisor, rank, 1, 7, &it.actions);
    answer_paused(rank, RPC_UNAVAILABLE);
    ck_assert_int_eq(rank_of(rank)->paused, DELIVERY_DUE);
    done(&it);
    come_back(1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSED)->rank, rank);
    answer_paused(rank, RPC_OK);
    ck_assert_int_eq(rank_of(rank)->paused, DELIVERY_DONE);
    ck_assert_int_eq(rank_of(rank)->state, RANK_RUNNING);
}
END_TEST

/* The answer to the first was lost, and the second pause came meanwhile. */
START_TEST(a_late_answer_does_not_count_for_a_newer_pause)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    pause_job(&it, "job-1", 1, 1);
    supervisor_executor_paused(it.supervisor, rank, 1, 7, &it.actions);
    resume_job(&it, "job-1", 1, 1);
    pause_job(&it, "job-1", 1, 2);
    done(&it);
    supervisor_executor_paused(it.supervisor, rank, 2, 9, &it.actions);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_PAUSED), 0);
    answer_paused(rank, RPC_OK);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSED)->rank, rank);
    ck_assert_uint_eq(rank_of(rank)->paused_number, 2);
}
END_TEST

static void answer_staged(uint64_t rank, enum rpc_status status)
{
    supervisor_staged_answered(it.supervisor, rank, status, "trouble", it.now_ms, &it.actions);
}

START_TEST(a_checkpoint_is_told_until_it_is_taken_also_of_an_executor_that_is_gone)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_staged(&it, rank, 20);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STAGED)->rank, rank);
    done(&it);
    executor_staged(&it, rank, 20); /* the same again says nothing new */
    ck_assert_uint_eq(it.actions.count, 0);
    answer_staged(rank, RPC_UNAVAILABLE);
    ck_assert_int_eq(rank_of(rank)->staged, DELIVERY_DUE);
    rank_gone(&it, rank, "was killed by signal 9");
    done(&it);
    come_back(1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STAGED)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0);
    answer_staged(rank, RPC_OK);
    ck_assert_int_eq(rank_of(rank)->staged, DELIVERY_DONE);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STOPPED)->rank, rank);
}
END_TEST

START_TEST(a_repeated_assignment_is_answered_and_not_started_again)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(it.actions.count, 0); /* its executor is not ready yet */
    ready(rank);
    ck_assert_uint_eq(want(&it, SUPERVISOR_READY)->rank, rank);
    answer_ready(rank, RPC_OK);
    done(&it);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_READY)->rank, rank);
    answer_ready(rank, RPC_OK);
    rank_gone(&it, rank, "left");
    answer_stopped(rank, RPC_OK);
    done(&it);
    assign(&it, "job-1", 1, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STOPPED)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
}
END_TEST

START_TEST(what_ended_in_an_older_term_may_have_the_name_of_something_new)
{
    uint64_t taken = start_rank(&it, "job-1", 1);
    rank_gone(&it, taken, "left");
    answer_stopped(taken, RPC_OK);
    uint64_t untold = start_rank(&it, "job-2", 1);
    lose_heartbeat(&it);
    rank_gone(&it, untold, "left");
    come_back(2);
    ck_assert_ptr_null(supervisor_rank(it.supervisor, taken));
    ck_assert_uint_eq(want(&it, SUPERVISOR_STOPPED)->rank, untold);
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
    come_back(2);
    done(&it);
    assign(&it, "job-1", 4, 0, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, orphan);
    rank_gone(&it, orphan, "was killed");
    ck_assert_str_eq(rank_of(orphan)->reason, "epoch 4 has begun");
}
END_TEST

START_TEST(an_assignment_to_no_device_of_ours_is_a_fault)
{
    assign(&it, "job-1", 1, 0, DEVICES);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    const struct rank *rank = rank_of(want(&it, SUPERVISOR_STOPPED)->rank);
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
    const struct rank *rank = rank_of(want(&it, SUPERVISOR_START)->rank);
    ck_assert_uint_eq(rank->epoch, 2);
    ck_assert_uint_eq(rank->device_index, 0);
    ck_assert_int_eq(rank_of(old)->cause, CAUSE(QUIESCED));
}
END_TEST

START_TEST(a_rank_that_waits_is_cancelled_without_ever_starting)
{
    uint64_t old = start_rank(&it, "job-1", 1);
    assign(&it, "job-2", 1, 0, 0);
    done(&it);
    cancel(&it, "job-2", 1);
    ck_assert_int_eq(rank_of(want(&it, SUPERVISOR_STOPPED)->rank)->cause, CAUSE(CANCELLED));
    rank_gone(&it, old, "left");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
}
END_TEST

START_TEST(a_rank_that_is_cancelled_and_never_came_is_reported_once)
{
    uint64_t known = start_rank(&it, "job-1", 1);
    done(&it);
    cancel_rank(&it, "job-1", 1, 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0); /* it is here, and being stopped */
    cancel_rank(&it, "job-2", 3, 7);
    const struct rank *rank = rank_of(want(&it, SUPERVISOR_STOPPED)->rank);
    ck_assert_str_eq(rank->job, "job-2");
    ck_assert_uint_eq(rank->epoch, 3);
    ck_assert_uint_eq(rank->rank, 7);
    ck_assert_int_eq(rank->cause, CAUSE(CANCELLED));
    done(&it);
    cancel_rank(&it, "job-2", 3, 7);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0);
    ck_assert_ptr_nonnull(rank_of(known));
}
END_TEST

START_TEST(a_question_of_an_older_term_that_is_refused_does_not_count)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    done(&it);
    for (int i = 0; i < 3; i++) {
        supervisor_rank_failed(it.supervisor, rank, 0, RPC_FAILED_PRECONDITION, "say Hello first",
                               it.now_ms, &it.actions);
        ck_assert_int_eq(rank_of(rank)->state, RANK_RUNNING);
    }
    supervisor_rank_failed(it.supervisor, rank, 1, RPC_FAILED_PRECONDITION, "say Hello first",
                           it.now_ms, &it.actions);
    ck_assert_int_eq(rank_of(rank)->state, RANK_RUNNING); /* the first time */
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
    ck_assert_int_eq(rank_of(rank)->cause, CAUSE(CANCELLED));
    ck_assert_str_eq(rank_of(rank)->reason, "asked for");
}
END_TEST

/* What is said of an executor by itself and by who asks it to stop, and what counts. */
static const struct {
    const char *name;
    int said;   /* a cause; -1: it says nothing */
    bool asked; /* to stop, before that */
    int cause;
    const char *reason;
} endings[] = {
    {"says nothing", -1, false, CAUSE(FAULT), "the executor left; its last lines: oh"},
    {"fault", CAUSE(FAULT), false, CAUSE(FAULT), "said"},
    {"done", CAUSE(DONE), false, CAUSE(DONE), "said"},
    {"asked", -1, true, CAUSE(CANCELLED), "asked for"},
    {"asked, fault", CAUSE(FAULT), true, CAUSE(FAULT), "said"},
    {"asked, peer lost", CAUSE(PEER_LOST), true, CAUSE(CANCELLED), "asked for"},
    {"asked, done", CAUSE(DONE), true, CAUSE(DONE), "said"},
};

START_TEST(why_an_executor_ended_is_the_first_cause)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    if (endings[_i].asked)
        cancel(&it, "job-1", 1);
    if (endings[_i].said >= 0)
        supervisor_executor_stopping(it.supervisor, rank,
                                     (Gimbal__StoppedRequest__Cause)endings[_i].said, "said", 9,
                                     it.now_ms);
    supervisor_executor_gone(it.supervisor, rank, "left", "oh", it.now_ms, &it.actions);
    ck_assert_msg((int)rank_of(rank)->cause == endings[_i].cause, "%s", endings[_i].name);
    ck_assert_str_eq(rank_of(rank)->reason, endings[_i].reason);
}
END_TEST

START_TEST(an_executor_that_is_done_but_does_not_leave_is_killed)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    supervisor_executor_stopping(it.supervisor, rank, CAUSE(DONE), "", 9, it.now_ms);
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_SIGNAL), SUPERVISOR_PATIENCE_MS);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_int_eq(rank_of(rank)->cause, CAUSE(DONE));
    ck_assert_uint_eq(rank_of(rank)->step, 9);
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

START_TEST(stopped_waits_for_the_answer_to_ready_and_both_survive_an_outage)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    ready(rank);
    rank_gone(&it, rank, "left");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0);
    answer_ready(rank, RPC_UNAVAILABLE); /* of no use any more */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0);
    done(&it);
    come_back(2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_READY), 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STOPPED)->rank, rank);
    answer_stopped(rank, RPC_DEADLINE_EXCEEDED);
    done(&it);
    come_back(2);
    ck_assert_uint_eq(want(&it, SUPERVISOR_STOPPED)->rank, rank);
    answer_stopped(rank, RPC_OK);
    done(&it);
    lose_heartbeat(&it);
    come_back(2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_STOPPED), 0);
}
END_TEST

START_TEST(a_rank_that_is_refused_twice_in_a_term_is_stopped)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    ready(rank);
    answer_ready(rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    done(&it);
    come_back(2); /* it was the term */
    ck_assert_uint_eq(want(&it, SUPERVISOR_READY)->rank, rank);
    answer_ready(rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    done(&it);
    come_back(2); /* it was not */
    answer_ready(rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
    rank_gone(&it, rank, "was killed");
    ck_assert_str_eq(rank_of(rank)->reason, "the coordinator refuses it: trouble");
}
END_TEST

START_TEST(a_refusal_that_crossed_a_new_term_is_only_repeated)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    ready(rank);
    lose_heartbeat(&it);
    come_back(2);
    done(&it);
    answer_ready(rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(want(&it, SUPERVISOR_READY)->rank, rank);
    ck_assert_uint_eq(it.actions.count, 1);
}
END_TEST

START_TEST(only_so_many_ended_ranks_are_remembered)
{
    for (uint64_t epoch = 1; epoch <= 3 * SUPERVISOR_ENDED_MAX; epoch++) {
        uint64_t rank = start_rank(&it, "job-1", epoch);
        rank_gone(&it, rank, "left");
        answer_stopped(rank, RPC_OK);
        done(&it);
    }
    ck_assert_uint_eq(supervisor_rank_count(it.supervisor), SUPERVISOR_ENDED_MAX);
    ck_assert_uint_eq(supervisor_rank_at(it.supervisor, 0)->epoch, 2 * SUPERVISOR_ENDED_MAX + 1);
}
END_TEST

START_TEST(a_stopping_worker_stops_reports_and_quits)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    supervisor_terminate(it.supervisor, it.now_ms, &it.actions);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    assign(&it, "job-2", 1, 0, 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    answer_stopped(want(&it, SUPERVISOR_STOPPED)->rank, RPC_OK);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIT), 0);
    rank_gone(&it, rank, "was killed by signal 15");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIT), 0);
    answer_stopped(rank, RPC_OK);
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

int main(void)
{
    TCase *tcase = tcase_create("ranks");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_pause_is_passed_on_once_and_told_as_often_as_it_is_asked_for);
    tcase_add_test(tcase, a_pause_is_told_again_after_the_link_was_lost);
    tcase_add_test(tcase, a_late_answer_does_not_count_for_a_newer_pause);
    tcase_add_test(tcase, a_checkpoint_is_told_until_it_is_taken_also_of_an_executor_that_is_gone);
    tcase_add_test(tcase, a_repeated_assignment_is_answered_and_not_started_again);
    tcase_add_test(tcase, what_ended_in_an_older_term_may_have_the_name_of_something_new);
    tcase_add_test(tcase, an_assignment_of_an_older_epoch_is_ignored);
    tcase_add_test(tcase, an_assignment_of_a_new_term_counts_whatever_its_epoch_is);
    tcase_add_test(tcase, an_assignment_to_no_device_of_ours_is_a_fault);
    tcase_add_test(tcase, a_new_epoch_waits_until_the_old_one_has_left_its_device);
    tcase_add_test(tcase, a_rank_that_waits_is_cancelled_without_ever_starting);
    tcase_add_test(tcase, a_rank_that_is_cancelled_and_never_came_is_reported_once);
    tcase_add_test(tcase, a_question_of_an_older_term_that_is_refused_does_not_count);
    tcase_add_test(tcase, a_cancelled_executor_gets_two_seconds_and_is_then_killed_once);
    tcase_add_loop_test(tcase, why_an_executor_ended_is_the_first_cause, 0,
                        sizeof endings / sizeof *endings);
    tcase_add_test(tcase, an_executor_that_is_done_but_does_not_leave_is_killed);
    tcase_add_test(tcase, go_is_passed_on_once);
    tcase_add_test(tcase, stopped_waits_for_the_answer_to_ready_and_both_survive_an_outage);
    tcase_add_test(tcase, a_rank_that_is_refused_twice_in_a_term_is_stopped);
    tcase_add_test(tcase, a_refusal_that_crossed_a_new_term_is_only_repeated);
    tcase_add_test(tcase, only_so_many_ended_ranks_are_remembered);
    tcase_add_test(tcase, a_stopping_worker_stops_reports_and_quits);
    tcase_add_test(tcase, a_stopping_worker_does_not_wait_for_ever_for_its_coordinator);
    return suite_run("supervisor ranks", tcase, NULL);
}
