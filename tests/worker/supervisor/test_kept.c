/* test_kept.c - executors that leave an epoch and stay: for the next one, and not for ever. */
#include "common/message/message.h"
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <signal.h>

#define CAUSE(name) GIMBAL__STOPPED_REQUEST__CAUSE__##name

static struct supervised it;

static void set_up(void)
{
    supervised_open_up(&it);
}

static void tear_down(void)
{
    supervised_close(&it);
}

/* On device 0, and its assignment taken. */
static uint64_t start_staying(const char *job, uint64_t epoch)
{
    assign_staying(&it, job, epoch, 0, 0);
    uint64_t rank = want(&it, SUPERVISOR_START)->rank;
    message_free(&supervisor_take_assignment(it.supervisor, rank)->base);
    done(&it);
    return rank;
}

static void say_kept(uint64_t rank, Gimbal__StoppedRequest__Cause cause)
{
    executor_stopped(&it, rank, cause, "rank 1 is gone", 7, true);
}

/* Out of epoch 1, reported, and taken. */
static uint64_t keep(const char *job)
{
    uint64_t rank = start_staying(job, 1);
    say_kept(rank, CAUSE(PEER_LOST));
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    supervisor_rank_answered(it.supervisor, rank, MESSAGE_STOPPED, RPC_OK, "", it.now_ms,
                             &it.actions);
    done(&it);
    return rank;
}

START_TEST(an_executor_leaves_its_epoch_and_is_given_the_next_one)
{
    uint64_t rank = start_staying("job-1", 1);
    quiesce(&it, "job-1", 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_QUIESCE)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    done(&it);
    say_kept(rank, CAUSE(QUIESCED));
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(QUIESCED));
    ck_assert_uint_eq(rank_of(&it, rank)->step, 7);
    done(&it);
    assign_staying(&it, "job-1", 2, 1, 0);
    const struct supervisor_action *adopt = want(&it, SUPERVISOR_ADOPT);
    ck_assert_uint_eq(adopt->from, rank);
    ck_assert_uint_eq(rank_of(&it, adopt->rank)->epoch, 2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    ck_assert(!rank_has_executor(rank_of(&it, rank)));
}
END_TEST

START_TEST(an_executor_that_gives_up_by_itself_is_kept_as_well)
{
    uint64_t rank = keep("job-1");
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(PEER_LOST));
    quiesce(&it, "job-1", 1); /* crossed it: the end is told once more, and nothing else */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIESCE), 0);
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
}
END_TEST

/* What has its state in a device's memory has to fetch it first. */
START_TEST(one_that_does_not_leave_its_epoch_is_killed)
{
    it.afar = _i == 1;
    uint64_t rank = start_staying("job-1", 1);
    quiesce(&it, "job-1", 1);
    done(&it);
    uint64_t limit_ms = it.afar ? SUPERVISOR_FETCH_MS : SUPERVISOR_PATIENCE_MS;
    ck_assert_uint_eq(advance_to(&it, SUPERVISOR_SIGNAL), limit_ms);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(QUIESCED));
}
END_TEST

/* The coordinator gave its worker up, who comes back as another one. */
static void be_taken_for_lost(void)
{
    advance_to(&it, SUPERVISOR_HEARTBEAT);
    supervisor_heartbeat_answered(it.supervisor, RPC_FAILED_PRECONDITION, "lost", 0, it.now_ms,
                                  &it.actions);
    for (int i = 0; i < 2; i++) {
        done(&it);
        advance_to(&it, SUPERVISOR_HELLO);
        answer_hello(&it, 1);
        answer_report(&it, RPC_FAILED_PRECONDITION);
    }
    want(&it, SUPERVISOR_RECONNECT);
}

/* It is on its way out of the epoch, with all that it has; only saving would be for nobody. */
START_TEST(one_that_leaves_while_its_worker_is_taken_for_lost_stays)
{
    it.afar = it.saves = true; /* that takes its time */
    uint64_t rank = start_staying("job-1", 1);
    go(&it, "job-1", 1);
    if (_i == 0)
        quiesce(&it, "job-1", 1);
    else
        quiesce_saving(&it, "job-1", 1);
    done(&it);
    be_taken_for_lost();
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIESCE), _i == 0 ? 0 : 1);
    ck_assert_int_eq(rank_of(&it, rank)->state, RANK_LEAVING);
    say_kept(rank, CAUSE(QUIESCED));
    ck_assert_int_eq(rank_of(&it, rank)->state, RANK_KEPT);
    come_back(&it, 1);
    assign_staying(&it, "job-1", 2, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_ADOPT)->from, rank);
    it.afar = it.saves = false;
}
END_TEST

START_TEST(one_that_cannot_stay_stops)
{
    uint64_t rank = start_rank(&it, "job-1", 1);
    quiesce(&it, "job-1", 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_QUIESCE), 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
}
END_TEST

START_TEST(another_job_on_its_device_has_it_stopped_first)
{
    uint64_t rank = keep("job-1");
    assign_staying(&it, "job-2", 1, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 0);
    done(&it);
    rank_gone(&it, rank, "was killed by signal 15");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 1);
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0); /* that was reported when it left */
}
END_TEST

START_TEST(it_is_let_go_when_its_job_has_ended)
{
    uint64_t rank = keep("job-1");
    drop(&it, "job-2");
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    drop(&it, "job-1");
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
}
END_TEST

START_TEST(it_is_let_go_when_nobody_asks_for_it)
{
    keep("job-1");
    uint64_t waited = 0;
    while (wanted(&it, SUPERVISOR_SIGNAL) == 0) {
        done(&it);
        advance(&it, HEARTBEAT_MS);
        waited += HEARTBEAT_MS;
        ck_assert_uint_le(waited, SUPERVISOR_KEEP_MS + HEARTBEAT_MS);
    }
    ck_assert_uint_ge(waited, SUPERVISOR_KEEP_MS);
}
END_TEST

/* Its coordinator is away for longer than that: what it has finished is for that one to know. */
START_TEST(it_is_not_let_go_before_the_coordinator_has_heard_of_it)
{
    bool dies = _i == 1;
    uint64_t rank = start_staying("job-1", 1);
    lose_heartbeat(&it);
    if (dies)
        rank_gone(&it, rank, "was killed by signal 9");
    else
        say_kept(rank, CAUSE(DONE));
    done(&it);
    advance(&it, 2 * SUPERVISOR_KEEP_MS);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    ck_assert(dies ? rank_of(&it, rank)->has_left_state : rank_of(&it, rank)->state == RANK_KEPT);
    answer_hello(&it, 2);
    answer_report(&it, RPC_OK);
    answer_told(&it, MESSAGE_STOPPED, rank, RPC_OK);
    for (uint64_t waited = 0; waited < SUPERVISOR_KEEP_MS; waited += HEARTBEAT_MS) {
        supervisor_heartbeat_answered(it.supervisor, RPC_OK, "", 0, it.now_ms, &it.actions);
        ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
        done(&it);
        advance(&it, HEARTBEAT_MS);
    }
    ck_assert(dies ? !rank_of(&it, rank)->has_left_state
                   : want(&it, SUPERVISOR_SIGNAL)->rank == rank);
}
END_TEST

START_TEST(it_waits_for_a_coordinator_no_longer_than_its_job_allows)
{
    it.orphan_ms = 20000;
    uint64_t rank = start_staying("job-1", 1);
    say_kept(rank, CAUSE(DONE));
    lose_heartbeat(&it);
    done(&it);
    advance_to(&it, SUPERVISOR_SIGNAL);
    ck_assert_uint_eq(want(&it, SUPERVISOR_SIGNAL)->rank, rank);
    it.orphan_ms = 0;
}
END_TEST

/* It was asked to leave, and had nothing left to do by then. */
START_TEST(one_that_is_done_says_so_whatever_it_was_asked)
{
    uint64_t rank = start_staying("job-1", 1);
    quiesce(&it, "job-1", 1);
    done(&it);
    Gimbal__LastStep last = GIMBAL__LAST_STEP__INIT;
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    last.loss = 1.25;
    stopped.cause = CAUSE(DONE);
    stopped.keeps = true;
    stopped.step = 9;
    stopped.last = &last;
    supervisor_executor_stopped(it.supervisor, rank, &stopped, it.now_ms, &it.actions);
    const struct rank *it_is = rank_of(&it, rank);
    ck_assert_int_eq(it_is->state, RANK_KEPT);
    ck_assert_int_eq(it_is->cause, CAUSE(DONE));
    ck_assert(it_is->finished);
    ck_assert_double_eq(it_is->last.loss, 1.25);
    ck_assert_uint_eq(it_is->step, 9);
}
END_TEST

START_TEST(an_executor_that_dies_while_it_is_kept_is_replaced)
{
    uint64_t rank = keep("job-1");
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_uint_eq(told(&it, MESSAGE_STOPPED), 0);
    assign_staying(&it, "job-1", 2, 0, 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_START), 1);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_ADOPT), 0);
}
END_TEST

/* ---- executors that die, and what they leave ---- */

/* Killed in its epoch, reported, and taken. */
static uint64_t lose(const char *job)
{
    uint64_t rank = start_staying(job, 1);
    rank_gone(&it, rank, "was killed by signal 9");
    supervisor_rank_answered(it.supervisor, rank, MESSAGE_STOPPED, RPC_OK, "", it.now_ms,
                             &it.actions);
    done(&it);
    ck_assert(rank_of(&it, rank)->has_left_state);
    ck_assert(!rank_has_executor(rank_of(&it, rank)));
    return rank;
}

START_TEST(what_a_killed_executor_leaves_is_for_the_next_one_of_its_job)
{
    uint64_t rank = lose("job-1");
    assign_staying(&it, "job-1", 2, 1, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_START)->from, rank);
    const struct rank *first = supervisor_rank(it.supervisor, rank);
    ck_assert(!first || !first->has_left_state);
}
END_TEST

START_TEST(one_that_is_killed_while_it_leaves_or_is_kept_leaves_its_state_too)
{
    uint64_t leaving = start_staying("job-1", 1);
    quiesce(&it, "job-1", 1);
    if (_i == 1)
        say_kept(leaving, CAUSE(QUIESCED));
    rank_gone(&it, leaving, "was killed by signal 9");
    ck_assert(rank_of(&it, leaving)->has_left_state);
    done(&it);
    assign_staying(&it, "job-1", 2, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_START)->from, leaving);
}
END_TEST

START_TEST(it_is_not_for_another_device)
{
    uint64_t rank = lose("job-1");
    assign_staying(&it, "job-1", 2, 1, 1);
    ck_assert_uint_eq(want(&it, SUPERVISOR_START)->from, 0);
    ck_assert(rank_of(&it, rank)->has_left_state);
}
END_TEST

START_TEST(another_job_on_the_device_has_it_let_go)
{
    uint64_t rank = lose("job-1");
    assign_staying(&it, "job-2", 1, 0, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_START)->from, 0);
    const struct rank *first = supervisor_rank(it.supervisor, rank);
    ck_assert(!first || !first->has_left_state);
}
END_TEST

START_TEST(it_is_let_go_with_its_job)
{
    uint64_t rank = lose("job-1");
    if (_i == 0)
        drop(&it, "job-1");
    else
        cancel(&it, "job-1", 1);
    ck_assert(!rank_of(&it, rank)->has_left_state);
}
END_TEST

START_TEST(it_is_not_held_for_ever)
{
    uint64_t rank = lose("job-1");
    advance(&it, SUPERVISOR_KEEP_MS - 1);
    ck_assert(rank_of(&it, rank)->has_left_state);
    advance(&it, 1);
    ck_assert(!rank_of(&it, rank)->has_left_state);
}
END_TEST

START_TEST(one_that_held_up_others_leaves_its_state_too)
{
    uint64_t rank = start_staying("job-1", 1);
    end_stalled(&it, "job-1", 1, 0);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert(rank_of(&it, rank)->has_left_state);
}
END_TEST

START_TEST(one_that_was_stopped_leaves_nothing)
{
    uint64_t rank = start_staying("job-1", 1);
    cancel(&it, "job-1", 1);
    rank_gone(&it, rank, "was killed by signal 15");
    ck_assert(!rank_of(&it, rank)->has_left_state);
}
END_TEST

SUITE(supervisor_kept)
{
    TCase *tcase = tcase_create("kept");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_executor_leaves_its_epoch_and_is_given_the_next_one);
    tcase_add_test(tcase, an_executor_that_gives_up_by_itself_is_kept_as_well);
    tcase_add_loop_test(tcase, one_that_does_not_leave_its_epoch_is_killed, 0, 2);
    tcase_add_loop_test(tcase, one_that_leaves_while_its_worker_is_taken_for_lost_stays, 0, 2);
    tcase_add_test(tcase, one_that_cannot_stay_stops);
    tcase_add_test(tcase, another_job_on_its_device_has_it_stopped_first);
    tcase_add_test(tcase, it_is_let_go_when_its_job_has_ended);
    tcase_add_test(tcase, it_is_let_go_when_nobody_asks_for_it);
    tcase_add_loop_test(tcase, it_is_not_let_go_before_the_coordinator_has_heard_of_it, 0, 2);
    tcase_add_test(tcase, it_waits_for_a_coordinator_no_longer_than_its_job_allows);
    tcase_add_test(tcase, one_that_is_done_says_so_whatever_it_was_asked);
    tcase_add_test(tcase, an_executor_that_dies_while_it_is_kept_is_replaced);
    tcase_add_test(tcase, what_a_killed_executor_leaves_is_for_the_next_one_of_its_job);
    tcase_add_loop_test(tcase, one_that_is_killed_while_it_leaves_or_is_kept_leaves_its_state_too,
                        0, 2);
    tcase_add_test(tcase, it_is_not_for_another_device);
    tcase_add_test(tcase, another_job_on_the_device_has_it_let_go);
    tcase_add_loop_test(tcase, it_is_let_go_with_its_job, 0, 2);
    tcase_add_test(tcase, it_is_not_held_for_ever);
    tcase_add_test(tcase, one_that_held_up_others_leaves_its_state_too);
    tcase_add_test(tcase, one_that_was_stopped_leaves_nothing);
    return suite_run("supervisor kept", tcase, NULL);
}
