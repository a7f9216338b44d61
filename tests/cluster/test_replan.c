/* test_replan.c - real processes: of three workers one or two are killed, or an executor, in the
 * middle of a training. It goes on with those that are left, and the loss in the end is that of a
 * training that nobody disturbed. Afterwards no process and no file is left. */
#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define COPIES "elastic: {copy_every: 1, copy_share: 0}"
#define NO_COPIES "elastic: {copy_every: 0}"

static double undisturbed;

/* It is held. */
static void start_job(const char *division, const char *elastic)
{
    trio_write_job(division, elastic);
    hold_take();
    trio_submit();
    ck_assert_msg(command_await(&trio.job, "\"event\":\"step\""), "no step: %s",
                  command_last(&trio.job));
}

static void check_loss(void)
{
    double loss = trio_finish_job();
    ck_assert_msg(fabs(loss - undisturbed) < TRIO_LOSS_LIMIT, "the loss is %g, undisturbed %g",
                  loss, undisturbed);
}

static void check_replan(int lost_most, int inherited)
{
    ck_assert_msg(command_await(&trio.job, "\"event\":\"job-replanned\""), "no replan");
    ck_assert_msg(command_await(&trio.job, "first step"), "half an event");
    json_t *replan = trio_event("job-replanned");
    const char *text = json_string_value(json_object_get(replan, "text"));
    ck_assert_msg(trio_number(replan, "steps_lost") <= lost_most, "%s", text);
    ck_assert_msg((int)trio_number(replan, "inherited") == inherited, "%s", text);
    ck_assert_msg(strstr(text, "from memory") != NULL, "%s", text);
    json_decref(replan);
    check_loss();
}

/* Its worker holds the state: nothing is lost, although nothing of it is anywhere else. */
static void a_killed_executor_costs_no_step(const char *division)
{
    start_job(division, NO_COPIES);
    pid_t executor = command_child(trio.workers[trio_find_victim()].pid);
    ck_assert_int_eq(kill(executor, SIGKILL), 0);
    hold_let_go();
    check_replan(0, 1);
}

/* What it alone had, its neighbour has as it was behind the newest step, or the one before. */
static void a_killed_worker_costs_a_step_at_most(const char *division)
{
    start_job(division, COPIES);
    int victim = trio_find_victim();
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGKILL), 0);
    hold_let_go();
    check_replan(1, 0);
    trio_collect_worker(victim, 128 + SIGKILL);
    trio_start_worker(victim);
    trio_await_all();
}

static void a_cancelled_job_leaves_nothing(const char *division)
{
    static struct command cancel;
    start_job(division, COPIES);
    command_start(&cancel, (const char *const[]){GIMBAL, "cancel", trio.name, NULL});
    ck_assert_msg(command_finish(&cancel) == 0, "%s", cancel.err);
    hold_let_go();
    ck_assert_int_ne(command_finish(&trio.job), 0);
    for (int i = 0; i < TRIO_NODES; i++)
        ck_assert_int_eq(command_child(trio.workers[i].pid), 0);
}

START_TEST(losses_change_no_loss)
{
    const char *division = trio_divisions[_i];
    start_job(division, COPIES);
    hold_let_go();
    undisturbed = trio_finish_job();
    a_killed_executor_costs_no_step(division);
    a_killed_worker_costs_a_step_at_most(division);
    a_cancelled_job_leaves_nothing(division);
}
END_TEST

/* Too few are left; it waits for one more, and goes on from a copy, or from the beginning. */
START_TEST(two_killed_workers_change_no_loss)
{
    start_job(trio_divisions[0], COPIES);
    hold_let_go();
    undisturbed = trio_finish_job();
    start_job(trio_divisions[0], COPIES);
    for (int victim = 1; victim < TRIO_NODES; victim++)
        ck_assert_int_eq(kill(trio.workers[victim].pid, SIGKILL), 0);
    hold_let_go();
    for (int victim = 1; victim < TRIO_NODES; victim++)
        trio_collect_worker(victim, 128 + SIGKILL);
    trio_await("the cluster has only 1");
    trio_start_worker(1);
    check_loss();
}
END_TEST

SUITE(replan)
{
    TCase *tcase = tcase_create("replan");
    tcase_add_checked_fixture(tcase, trio_start, trio_stop);
    tcase_set_timeout(tcase, 180);
    tcase_add_loop_test(tcase, losses_change_no_loss, 0, TRIO_DIVISIONS);
    tcase_add_test(tcase, two_killed_workers_change_no_loss);
    return suite_run("replan", tcase, NULL);
}
