/* test_deliver.c - what the coordinator is told until it has taken it, and what it refuses. */
#include "common/rpc/client.h"
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <signal.h>

static struct supervised it;

static void tear_down(void)
{
    supervised_close(&it);
}

static void set_up(void)
{
    supervised_open_up(&it);
}

START_TEST(a_pause_is_passed_on_once_and_told_as_often_as_it_is_asked_for)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    pause_job(&it, "job-1", 1, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_PAUSE)->rank, rank);
    ck_assert_uint_eq(rank_of(&it, rank)->pause, 1);
    done(&it);
    pause_job(&it, "job-1", 1, 1);
    pause_job(&it, "job-1", 2, 2);
    pause_job(&it, "job-2", 1, 2);
    ck_assert_uint_eq(it.actions.count, 0);
    supervisor_executor_paused(it.supervisor, rank, 1, 7, &it.actions);
    ck_assert_uint_eq(want_told(&it, MESSAGE_PAUSED), rank);
    ck_assert_uint_eq(rank_of(&it, rank)->paused_step, 7);
    answer_told(&it, MESSAGE_PAUSED, rank, RPC_OK);
    done(&it);
    pause_job(&it, "job-1", 1, 1); /* by a coordinator that has started again */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_PAUSE), 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_PAUSED), rank);
    answer_told(&it, MESSAGE_PAUSED, rank, RPC_OK);
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
    answer_told(&it, MESSAGE_PAUSED, rank, RPC_UNAVAILABLE);
    ck_assert_int_eq(rank_of(&it, rank)->delivery[MESSAGE_PAUSED], DELIVERY_DUE);
    done(&it);
    come_back(&it, 1);
    ck_assert_uint_eq(want_told(&it, MESSAGE_PAUSED), rank);
    answer_told(&it, MESSAGE_PAUSED, rank, RPC_OK);
    ck_assert_int_eq(rank_of(&it, rank)->delivery[MESSAGE_PAUSED], DELIVERY_DONE);
    ck_assert_int_eq(rank_of(&it, rank)->state, RANK_RUNNING);
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
    ck_assert_uint_eq(told(&it, MESSAGE_PAUSED), 0);
    answer_told(&it, MESSAGE_PAUSED, rank, RPC_OK);
    ck_assert_uint_eq(want_told(&it, MESSAGE_PAUSED), rank);
    ck_assert_uint_eq(rank_of(&it, rank)->paused_number, 2);
}
END_TEST

START_TEST(a_checkpoint_is_told_until_it_is_taken_also_of_an_executor_that_is_gone)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_staged(&it, rank, 20);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STAGED), rank);
    done(&it);
    executor_staged(&it, rank, 20); /* the same again says nothing new */
    ck_assert_uint_eq(it.actions.count, 0);
    answer_told(&it, MESSAGE_STAGED, rank, RPC_UNAVAILABLE);
    ck_assert_int_eq(rank_of(&it, rank)->delivery[MESSAGE_STAGED], DELIVERY_DUE);
    rank_gone(&it, rank, "was killed by signal 9");
    done(&it);
    come_back(&it, 1);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STAGED), rank);
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
    answer_told(&it, MESSAGE_STAGED, rank, RPC_OK);
    ck_assert_int_eq(rank_of(&it, rank)->delivery[MESSAGE_STAGED], DELIVERY_DONE);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
}
END_TEST

START_TEST(a_question_of_an_older_term_that_is_refused_does_not_count)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    done(&it);
    for (int i = 0; i < 3; i++) {
        supervisor_rank_failed(it.supervisor, rank, 0, RPC_FAILED_PRECONDITION, "say Hello first",
                               it.now_ms, &it.actions);
        ck_assert_int_eq(rank_of(&it, rank)->state, RANK_RUNNING);
    }
    supervisor_rank_failed(it.supervisor, rank, 1, RPC_FAILED_PRECONDITION, "say Hello first",
                           it.now_ms, &it.actions);
    ck_assert_int_eq(rank_of(&it, rank)->state, RANK_RUNNING); /* the first time */
}
END_TEST

START_TEST(stopped_waits_for_the_answer_to_ready_and_both_survive_an_outage)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_ready(&it, rank);
    rank_gone(&it, rank, "left");
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
    answer_told(&it, MESSAGE_READY, rank, RPC_UNAVAILABLE); /* of no use any more */
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
    done(&it);
    come_back(&it, 2);
    ck_assert_uint_eq(told(&it, MESSAGE_READY), 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_DEADLINE_EXCEEDED);
    done(&it);
    come_back(&it, 2);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_OK);
    done(&it);
    lose_heartbeat(&it);
    come_back(&it, 2);
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
}
END_TEST

START_TEST(a_rank_that_is_refused_twice_in_a_term_is_stopped)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_ready(&it, rank);
    answer_told(&it, MESSAGE_READY, rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    done(&it);
    come_back(&it, 2); /* it was the term */
    ck_assert_uint_eq(want_told(&it, MESSAGE_READY), rank);
    answer_told(&it, MESSAGE_READY, rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    done(&it);
    come_back(&it, 2); /* it was not */
    answer_told(&it, MESSAGE_READY, rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
    rank_gone(&it, rank, "was killed");
    ck_assert_str_eq(rank_of(&it, rank)->reason, "the coordinator refuses it: trouble");
}
END_TEST

/* As behind a cut network: the job, which is in another epoch, waits for this worker. */
START_TEST(a_refusal_is_repeated_soon_however_long_the_coordinator_was_away)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    lose_heartbeat(&it);
    for (int i = 0; i < 10; i++) {
        done(&it);
        advance_to(&it, SUPERVISOR_HELLO);
        supervisor_hello_answered(it.supervisor, RPC_UNAVAILABLE, "gone", 0, it.now_ms,
                                  &it.actions);
    }
    done(&it);
    come_back(&it, 1);
    rank_gone(&it, rank, "left");
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_FAILED_PRECONDITION);
    done(&it);
    ck_assert_uint_le(advance_to(&it, SUPERVISOR_HELLO), RPC_BACKOFF_MS_MIN);
}
END_TEST

START_TEST(a_refusal_that_crossed_a_new_term_is_only_repeated)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    executor_ready(&it, rank);
    lose_heartbeat(&it);
    come_back(&it, 2);
    done(&it);
    answer_told(&it, MESSAGE_READY, rank, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(want_told(&it, MESSAGE_READY), rank);
    ck_assert_uint_eq(it.actions.count, 1);
}
END_TEST

START_TEST(only_so_many_ended_ranks_are_remembered)
{
    for (uint64_t epoch = 1; epoch <= 3 * SUPERVISOR_ENDED_MAX; epoch++) {
        uint64_t rank = start_rank(&it, "job-1", epoch);
        rank_gone(&it, rank, "left");
        answer_told(&it, MESSAGE_STOPPED, rank, RPC_OK);
        done(&it);
    }
    ck_assert_uint_eq(supervisor_rank_count(it.supervisor), SUPERVISOR_ENDED_MAX);
    ck_assert_uint_eq(supervisor_rank_at(it.supervisor, 0)->epoch, 2 * SUPERVISOR_ENDED_MAX + 1);
}
END_TEST

SUITE(supervisor_deliver)
{
    TCase *tcase = tcase_create("deliver");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_pause_is_passed_on_once_and_told_as_often_as_it_is_asked_for);
    tcase_add_test(tcase, a_pause_is_told_again_after_the_link_was_lost);
    tcase_add_test(tcase, a_late_answer_does_not_count_for_a_newer_pause);
    tcase_add_test(tcase, a_checkpoint_is_told_until_it_is_taken_also_of_an_executor_that_is_gone);
    tcase_add_test(tcase, a_question_of_an_older_term_that_is_refused_does_not_count);
    tcase_add_test(tcase, stopped_waits_for_the_answer_to_ready_and_both_survive_an_outage);
    tcase_add_test(tcase, a_rank_that_is_refused_twice_in_a_term_is_stopped);
    tcase_add_test(tcase, a_refusal_is_repeated_soon_however_long_the_coordinator_was_away);
    tcase_add_test(tcase, a_refusal_that_crossed_a_new_term_is_only_repeated);
    tcase_add_test(tcase, only_so_many_ended_ranks_are_remembered);
    return suite_run("supervisor deliver", tcase, NULL);
}
