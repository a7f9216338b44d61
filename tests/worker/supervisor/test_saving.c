/* test_saving.c - which executors may save before they stop, and for how long. */
#include "common/message/message.h"
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <signal.h>

static struct supervised it;

static void set_up(void)
{
    supervised_open_up(&it);
    it.saves = true;
}

static void tear_down(void)
{
    supervised_close(&it);
    it.saves = false;
    it.orphan_ms = 0;
}

/* One that trains. */
static uint64_t start_going(void)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    go(&it, "job-1", 1);
    done(&it);
    return rank;
}

static void terminate(void)
{
    supervisor_terminate(it.supervisor, it.now_ms, &it.actions);
}

START_TEST(a_stopping_worker_lets_its_executors_save)
{
    uint64_t rank = start_going();
    terminate();
    ck_assert_uint_eq(want(&it, SUPERVISOR_SAVE)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    executor_staged(&it, rank, 7); /* its checkpoint is told and taken */
    ck_assert_uint_eq(want_told(&it, MESSAGE_STAGED), rank);
    supervisor_rank_answered(it.supervisor, rank, MESSAGE_STAGED, RPC_OK, "", it.now_ms,
                             &it.actions);
    rank_gone(&it, rank, "left with exit status 130");
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    ck_assert_int_eq(supervisor_rank(it.supervisor, rank)->cause,
                     GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED);
}
END_TEST

START_TEST(one_that_does_not_come_to_an_end_is_killed)
{
    uint64_t rank = start_going();
    cancel_saving(&it, "job-1", 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SAVE)->rank, rank);
    done(&it);
    cancel_saving(&it, "job-1", 1); /* again */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE) + wanted(&it, SUPERVISOR_SIGNAL), 0);
    uint64_t waited_ms = 0;
    while (wanted(&it, SUPERVISOR_SIGNAL) == 0) {
        supervisor_heartbeat_answered(it.supervisor, RPC_OK, "", 0, it.now_ms, &it.actions);
        advance(&it, 100);
        waited_ms += 100;
    }
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    ck_assert_uint_eq(waited_ms, SUPERVISOR_SAVING_MS);
}
END_TEST

START_TEST(one_that_has_saved_and_does_not_leave_is_killed_soon)
{
    uint64_t rank = start_going();
    terminate();
    done(&it);
    executor_stopped(&it, rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "behind step 7", 7,
                     false);
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_SIGNAL), SUPERVISOR_PATIENCE_MS);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
}
END_TEST

START_TEST(who_is_to_stop_at_once_saves_no_longer)
{
    start_going();
    terminate();
    done(&it);
    cancel(&it, "job-1", 1); /* another rank is lost: nothing would come of it */
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    done(&it);
    uint64_t waited_ms = advance_to(&it, SUPERVISOR_SIGNAL);
    ck_assert_uint_eq(waited_ms, SUPERVISOR_PATIENCE_MS);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
}
END_TEST

START_TEST(who_cannot_save_is_stopped_at_once)
{
    start_rank(&it, "job-1", 1); /* it has not begun */
    cancel_saving(&it, "job-1", 1);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
    it.saves = false;
    assign(&it, "job-2", 1, 0, 1);
    go(&it, "job-2", 1);
    done(&it);
    cancel_saving(&it, "job-2", 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE), 0);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
}
END_TEST

START_TEST(without_a_coordinator_nobody_could_list_it)
{
    start_going();
    lose_heartbeat(&it);
    done(&it);
    terminate();
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE), 0);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
}
END_TEST

/* Its step was saved before it paused: it has only to wait until that is listed. */
START_TEST(a_paused_one_comes_to_an_end_by_itself)
{
    start_going();
    pause_job(&it, "job-1", 1, 1);
    done(&it);
    if (_i)
        cancel_saving(&it, "job-1", 1);
    else
        terminate();
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE), 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
}
END_TEST

/* One that trains, and can stay. */
static uint64_t start_staying(void)
{
    assign_staying(&it, "job-1", 1, 0, 0);
    uint64_t rank = want(&it, SUPERVISOR_START)->rank;
    message_free(&supervisor_take_assignment(it.supervisor, rank)->base);
    go(&it, "job-1", 1);
    done(&it);
    return rank;
}

static void leave_saving(void)
{
    quiesce_saving(&it, "job-1", 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIESCE), 1);
    done(&it);
}

static void stay(uint64_t rank)
{
    executor_stopped(&it, rank, GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST, "it was asked to stop",
                     7, true);
}

START_TEST(whoever_leaves_a_node_saves_and_stays)
{
    uint64_t rank = start_staying();
    leave_saving();
    ck_assert(supervisor_rank(it.supervisor, rank)->saving);
    quiesce_saving(&it, "job-1", 1); /* again: from a coordinator that is new */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIESCE), 0);
    stay(rank);
    ck_assert_int_eq(supervisor_rank(it.supervisor, rank)->state, RANK_KEPT);
    ck_assert_int_eq(supervisor_rank(it.supervisor, rank)->cause,
                     GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED);
}
END_TEST

/* Asked once more, or after its time, it is to leave at once, and keeps what it has. */
START_TEST(whoever_is_to_leave_at_once_saves_no_longer)
{
    uint64_t rank = start_staying(), waited_ms = 0;
    leave_saving();
    if (_i)
        quiesce(&it, "job-1", 1);
    for (; wanted(&it, SUPERVISOR_QUIESCE) == 0; waited_ms += 100) {
        supervisor_heartbeat_answered(it.supervisor, RPC_OK, "", 0, it.now_ms, &it.actions);
        advance(&it, 100);
    }
    ck_assert_uint_eq(waited_ms, _i ? 0 : SUPERVISOR_SAVING_MS);
    ck_assert(!supervisor_rank(it.supervisor, rank)->saving);
    done(&it);
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_SIGNAL), SUPERVISOR_PATIENCE_MS);
}
END_TEST

/* Before its node stops, or behind that: then it has nothing to stay for. */
START_TEST(a_node_that_stops_does_not_wait_for_what_stays)
{
    uint64_t rank = start_staying();
    leave_saving();
    terminate();
    ck_assert_uint_eq(want(&it, SUPERVISOR_SAVE)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    if (_i)
        stay(rank); /* it had not heard yet */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), _i ? 1 : 0);
    rank_gone(&it, rank, "left with exit status 130");
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
}
END_TEST

/* From the next heartbeat on; its Hello stays without an answer. */
static void stay_away(uint64_t milliseconds)
{
    lose_heartbeat(&it);
    done(&it);
    advance(&it, milliseconds);
}

static void answer_coordinator(void)
{
    answer_hello(&it, 2);
    answer_report(&it, RPC_OK);
}

START_TEST(a_coordinator_that_is_back_in_time_finds_all_as_it_was)
{
    it.orphan_ms = 20000;
    start_going();
    stay_away(10000);
    answer_coordinator();
    done(&it);
    stay_away(10000);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE) + wanted(&it, SUPERVISOR_SIGNAL), 0);
}
END_TEST

START_TEST(one_that_stays_away_ends_the_training_with_a_checkpoint)
{
    it.orphan_ms = 20000;
    uint64_t rank = start_going();
    stay_away(20000);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SAVE)->rank, rank);
    advance(&it, 10 * SUPERVISOR_SAVING_MS); /* nobody could list it: it waits */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    answer_coordinator();
    executor_staged(&it, rank, 7);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STAGED), rank);
    ck_assert_uint_le(supervisor_rank(it.supervisor, rank)->kill_at_ms,
                      it.now_ms + SUPERVISOR_SAVING_MS);
    rank_gone(&it, rank, "left with exit status 130");
    ck_assert_str_eq(supervisor_rank(it.supervisor, rank)->reason,
                     "no coordinator was in reach for 20 s, which is elastic.orphan");
}
END_TEST

/* Whoever comes back looks for those that wait with a checkpoint; it is not one of them, whatever
 * it has left. */
START_TEST(one_that_has_ended_is_due_for_nothing)
{
    uint64_t rank = _i ? start_staying() : start_going();
    if (_i)
        leave_saving();
    else
        cancel_saving(&it, "job-1", 1);
    if (_i)
        stay(rank);
    rank_gone(&it, rank, "left with exit status 130");
    stay_away(5000); /* before its end was taken */
    answer_coordinator();
    ck_assert_uint_eq(supervisor_rank(it.supervisor, rank)->kill_at_ms, UINT64_MAX);
}
END_TEST

START_TEST(one_that_stays_away_ends_what_has_no_checkpoints_too)
{
    it.orphan_ms = 20000;
    it.saves = false;
    start_going();
    stay_away(18000);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    advance(&it, 2000);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
}
END_TEST

START_TEST(a_worker_that_is_stopped_meanwhile_does_not_wait)
{
    it.orphan_ms = 20000;
    start_going();
    stay_away(20000);
    done(&it);
    terminate();
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGTERM);
}
END_TEST

START_TEST(a_paused_job_is_no_orphan)
{
    it.orphan_ms = 20000;
    start_going();
    pause_job(&it, "job-1", 1, 1);
    stay_away(60000);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SAVE) + wanted(&it, SUPERVISOR_SIGNAL), 0);
}
END_TEST

SUITE(supervisor_saving)
{
    TCase *tcase = tcase_create("saving");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_stopping_worker_lets_its_executors_save);
    tcase_add_test(tcase, one_that_does_not_come_to_an_end_is_killed);
    tcase_add_test(tcase, one_that_has_saved_and_does_not_leave_is_killed_soon);
    tcase_add_test(tcase, who_is_to_stop_at_once_saves_no_longer);
    tcase_add_test(tcase, who_cannot_save_is_stopped_at_once);
    tcase_add_test(tcase, without_a_coordinator_nobody_could_list_it);
    tcase_add_loop_test(tcase, a_paused_one_comes_to_an_end_by_itself, 0, 2);
    tcase_add_test(tcase, whoever_leaves_a_node_saves_and_stays);
    tcase_add_loop_test(tcase, whoever_is_to_leave_at_once_saves_no_longer, 0, 2);
    tcase_add_loop_test(tcase, a_node_that_stops_does_not_wait_for_what_stays, 0, 2);
    tcase_add_test(tcase, a_coordinator_that_is_back_in_time_finds_all_as_it_was);
    tcase_add_test(tcase, one_that_stays_away_ends_the_training_with_a_checkpoint);
    tcase_add_loop_test(tcase, one_that_has_ended_is_due_for_nothing, 0, 2);
    tcase_add_test(tcase, one_that_stays_away_ends_what_has_no_checkpoints_too);
    tcase_add_test(tcase, a_worker_that_is_stopped_meanwhile_does_not_wait);
    tcase_add_test(tcase, a_paused_job_is_no_orphan);
    return suite_run("supervisor saving", tcase, NULL);
}
