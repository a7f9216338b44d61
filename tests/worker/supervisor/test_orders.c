/* test_orders.c - what a worker does to an executor because it was told to: end one that holds up
 * the others, and the faults of a drill. */
#include "common/base/memory.h"
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

static void record(Gimbal__WorkerRecord *record)
{
    supervisor_record(it.supervisor, ++it.revision, record, it.now_ms, &it.actions);
}

static Gimbal__WorkerRecord *make_record(Gimbal__WorkerRecord__RecordCase which)
{
    Gimbal__WorkerRecord *made = xcalloc(1, sizeof *made);
    gimbal__worker_record__init(made);
    made->record_case = which;
    return made;
}

START_TEST(one_that_holds_up_the_others_is_killed_at_once_and_that_is_why_it_ended)
{
    uint64_t rank = start_rank(&it, "job-1", 3);
    end_stalled(&it, "job-1", 2, 0);
    end_stalled(&it, "job-2", 3, 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    end_stalled(&it, "job-1", 3, 0);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    done(&it);
    end_stalled(&it, "job-1", 3, 0); /* by a coordinator that has started again */
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    rank_gone(&it, rank, "was killed by signal 9");
    ck_assert_uint_eq(want_told(&it, MESSAGE_STOPPED), rank);
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(STALLED));
    ck_assert_str_eq(rank_of(&it, rank)->reason, "holds up 3 ranks");
}
END_TEST

static void drill_for(Gimbal__DrillFault fault, uint64_t epoch, uint32_t for_ms, uint32_t delay_ms)
{
    Gimbal__WorkerRecord *made = make_record(GIMBAL__WORKER_RECORD__RECORD_DRILL);
    made->drill = xcalloc(1, sizeof *made->drill);
    gimbal__drill__init(made->drill);
    made->drill->job = xstrdup("job-1");
    made->drill->epoch = epoch;
    made->drill->fault = fault;
    made->drill->for_ms = for_ms;
    made->drill->delay_ms = delay_ms;
    record(made);
}

static void drill(Gimbal__DrillFault fault, uint64_t epoch)
{
    drill_for(fault, epoch, 0, 0);
}

START_TEST(a_drill_does_its_fault_to_a_rank_that_runs_in_that_epoch)
{
    uint64_t rank = start_rank(&it, "job-1", 3);
    drill(GIMBAL__DRILL_FAULT__KILL_EXECUTOR, 2);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    drill(GIMBAL__DRILL_FAULT__KILL_EXECUTOR, 3);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGKILL);
    drill(GIMBAL__DRILL_FAULT__STOP_EXECUTOR, 3);
    ck_assert_int_eq(want(&it, SUPERVISOR_SIGNAL)->signal, SIGSTOP);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_DIE), 0);
    drill(GIMBAL__DRILL_FAULT__KILL_WORKER, 3);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_DIE), 1);
    rank_gone(&it, rank, "was killed by signal 9"); /* as if nobody had ordered it */
    ck_assert_int_eq(rank_of(&it, rank)->cause, CAUSE(FAULT));
}
END_TEST

START_TEST(a_fault_that_lasts_is_given_its_times)
{
    start_rank(&it, "job-1", 3);
    drill_for(GIMBAL__DRILL_FAULT__CUT_LINK, 2, 9000, 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_HINDER), 0);
    drill_for(GIMBAL__DRILL_FAULT__CUT_LINK, 3, 9000, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_HINDER)->for_ms, 9000);
    ck_assert_uint_eq(want(&it, SUPERVISOR_HINDER)->delay_ms, 0);
    drill_for(GIMBAL__DRILL_FAULT__SLOW_LINK, 3, 8000, 200);
    ck_assert_uint_eq(want(&it, SUPERVISOR_HINDER)->for_ms, 8000);
    ck_assert_uint_eq(want(&it, SUPERVISOR_HINDER)->delay_ms, 200);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_FILL_DISK), 0);
    drill_for(GIMBAL__DRILL_FAULT__FILL_DISK, 3, 7000, 0);
    ck_assert_uint_eq(want(&it, SUPERVISOR_FILL_DISK)->for_ms, 7000);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
}
END_TEST

/* It used to kill. */
START_TEST(a_fault_of_a_newer_release_does_nothing)
{
    start_rank(&it, "job-1", 3);
    done(&it);
    drill((Gimbal__DrillFault)99, 3);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_SIGNAL), 0);
    ck_assert_uint_eq(wanted(&it, SUPERVISOR_DIE), 0);
}
END_TEST

SUITE(supervisor_orders)
{
    TCase *tcase = tcase_create("orders");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, one_that_holds_up_the_others_is_killed_at_once_and_that_is_why_it_ended);
    tcase_add_test(tcase, a_drill_does_its_fault_to_a_rank_that_runs_in_that_epoch);
    tcase_add_test(tcase, a_fault_that_lasts_is_given_its_times);
    tcase_add_test(tcase, a_fault_of_a_newer_release_does_nothing);
    return suite_run("supervisor orders", tcase, NULL);
}
