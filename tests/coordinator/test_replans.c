/* test_replans.c - jobs whose executors stay when an epoch breaks, or is left on purpose. */
#include "coordinator/jobs/jobs.h"

#include "tests/coordinator/job_fixture.h"

#include <errno.h>

/* On workers a and b. */
static const struct job *running(unsigned most)
{
    restarts_max = most;
    replans = true;
    return job_in(JOB_RUNNING);
}

/* It has left its epoch, with what it has. */
static struct job_event left(const struct job *job, unsigned rank)
{
    struct job_event event = exited(job, rank, 1, "");
    event.exited.by_others = true;
    return event;
}

static struct job_event ready_behind(const struct job *job, unsigned rank, uint64_t step)
{
    struct job_event event = ready(job, rank);
    event.step = step;
    return event;
}

static struct job_event drained(const char *worker)
{
    struct job_event event = {.kind = JOB_EVENT_WORKER_DRAINS, .words = "repair"};
    event.worker.name = worker;
    event.worker.instance = 1;
    return event;
}

START_TEST(those_that_are_left_get_their_devices_back_and_say_where_they_are)
{
    const struct job *job = running(2);
    reach(job, 7);
    must(lost("b"));
    stands(job, "REPLANNING", "WorkerLost", "worker b was lost: silent for 5.00 s");
    actions_are("store j-1, quiesce j-1");
    must(left(job, 0));
    stands(job, "PENDING", "RestartPending", "replan 1 of 2: worker b was lost: silent for 5.00 s");
    ck_assert_str_eq(job->broke, "worker b was lost: silent for 5.00 s");
    ck_assert_int_eq(job->broke_reason, JOB_REASON_WORKER_LOST);
    ck_assert_uint_eq(job->step, 7); /* nothing is lost yet */
    ck_assert(job_left_executors(job));
    views[1].grantable = false;
    add_worker("0", HARDWARE_CPU, 2); /* whose devices come before a's */
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ranks_are(job, "a/0 0/0");
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    must(ready_behind(job, 0, 6));
    must(ready_behind(job, 1, 6));
    ck_assert_int_eq(job->state, JOB_RUNNING);
    ck_assert_uint_eq(job->step, 6);
}
END_TEST

START_TEST(they_come_before_jobs_that_wait)
{
    const struct job *job = running(2);
    const struct job *next = submit(1, 1, JOB_ANY);
    reach(job, 3);
    must(exited(job, 0, 139, "killed by signal 9"));
    must(left(job, 1));
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ck_assert_int_eq(next->state, JOB_PENDING);
}
END_TEST

/* Where executors have stayed its state is, and nowhere else: it pauses behind its next step. */
START_TEST(a_held_job_goes_on_where_executors_have_stayed)
{
    const struct job *job = running(2);
    struct job_event hold = of(JOB_EVENT_PAUSE, job);
    hold.words = "ada";
    reach(job, 7);
    must(lost("b"));
    if (_i == 0)
        must(hold);
    must(left(job, 0));
    views[1].grantable = false;
    add_worker("c", HARDWARE_CPU, 1);
    if (_i == 1)
        must(hold);
    ck_assert_int_eq(job->state, JOB_PENDING);
    schedule();
    if (_i == 2)
        must(hold);
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ranks_are(job, "a/0 c/0");
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    must(ready_behind(job, 0, 7));
    must(ready_behind(job, 1, 7));
    stands(job, "PAUSING", "Held", "paused by ada");
}
END_TEST

START_TEST(what_was_refused_lets_nobody_stay)
{
    const struct job *job = running(2);
    struct job_event refused = exited(job, 0, 1, "other data");
    refused.exited.refused = JOB_REASON_DATA_REFUSED;
    must(refused);
    ck_assert_int_eq(job->state, JOB_FAILING);
}
END_TEST

START_TEST(a_budget_that_is_used_up_lets_go_of_those_that_stayed)
{
    const struct job *job = running(0);
    reach(job, 7);
    must(lost("b"));
    must(left(job, 0));
    stands(job, "FAILED", "WorkerLost", "worker b was lost: silent for 5.00 s");
    actions_are("store j-1, quiesce j-1, drop j-1, release j-1");
}
END_TEST

/* In whichever epoch: they would stay for ten minutes, for nobody. */
START_TEST(a_job_that_is_cancelled_while_it_waits_lets_go_of_those_that_stayed)
{
    const struct job *job = running(2);
    reach(job, 7);
    must(lost("b"));
    must(left(job, 0));
    ck_assert_int_eq(job->state, JOB_PENDING);
    actions_are("store j-1, quiesce j-1, release j-1");
    must(cancelled(job));
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    actions_are("store j-1, drop j-1");
}
END_TEST

START_TEST(a_node_that_is_drained_gives_what_it_has_and_is_left)
{
    const struct job *job = running(0);
    reach(job, 7);
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    views[1].draining = true;
    must(drained("b"));
    stands(job, "REPLANNING", "ReplanAsked", "node b is drained: repair");
    must(left(job, 0));
    must(left(job, 1));
    stands(job, "PENDING", "RestartPending", "replan: node b is drained: repair");
    schedule();
    ranks_are(job, "a/0 c/0 b/0");
    ck_assert_uint_eq(job_trainers(job), 2);
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    for (unsigned rank = 0; rank < 3; rank++)
        must(ready_behind(job, rank, 7));
    ck_assert_int_eq(job->state, JOB_RUNNING);
    struct device_ref held[3];
    ck_assert_uint_eq(job_devices(job, held), 3);
    must(exited(job, 2, 0, ""));
    ck_assert_int_eq(job->state, JOB_RUNNING);
    ck_assert_uint_eq(job_devices(job, held), 2);
    ck_assert_uint_eq(job->restarts, 0); /* nothing was wrong */
}
END_TEST

/* Nobody has been told of it yet, so the job gets others, whether it could move later or not. */
START_TEST(a_node_that_is_drained_while_a_plan_is_searched_is_not_planned_for)
{
    replans = _i == 1;
    const struct job *job = job_in(JOB_PLANNING);
    struct job_event late = of(JOB_EVENT_PLANNED, job);
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    views[1].draining = true;
    must(drained("b"));
    stands(job, "PENDING", "ReplanAsked", "node b is drained: repair");
    actions_are("store j-1, release j-1");
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ranks_are(job, "a/0 c/0");
    ck_assert_int_eq(apply(late), -ESTALE);
}
END_TEST

START_TEST(what_stayed_on_a_node_that_is_drained_while_a_plan_is_searched_is_given)
{
    const struct job *job = running(2);
    reach(job, 7);
    must(exited(job, 0, 139, "killed by signal 9"));
    must(left(job, 1));
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    views[1].draining = true;
    must(drained("b"));
    schedule();
    ranks_are(job, "a/0 c/0 b/0");
    ck_assert_uint_eq(job_trainers(job), 2);
}
END_TEST

START_TEST(whoever_leaves_a_drained_node_saves_before)
{
    const struct job *job = running(2);
    reach(job, 7);
    actions_are("");
    must(drained("b"));
    ck_assert(job->saves);
    actions_are("store j-1, quiesce j-1");
    must(left(job, 0)); /* saved, and out of it */
    ck_assert(job->saves);
    must(left(job, 1));
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ck_assert(!job->saves);
}
END_TEST

/* Nobody waits for a checkpoint that one who is gone would have to write. */
START_TEST(a_loss_among_those_that_save_ends_the_saving)
{
    const struct job *job = running(2);
    reach(job, 7);
    if (_i < 2) {
        must(drained("b"));
    } else {
        struct job_event cancel = cancelled(job);
        cancel.save = true;
        must(cancel);
    }
    ck_assert(job->saves);
    actions_are(_i < 2 ? "store j-1, quiesce j-1" : "store j-1, stop j-1");
    must(_i == 1 ? exited(job, 1, 139, "killed by signal 9") : lost("b"));
    ck_assert(!job->saves);
    actions_are(_i < 2 ? "store j-1, hold j-1, quiesce j-1" : "store j-1, hold j-1, stop j-1");
}
END_TEST

START_TEST(before_its_first_step_a_job_has_nothing_to_save)
{
    replans = true;
    const struct job *job = job_in(JOB_STARTING);
    must(drained("b"));
    ck_assert_int_eq(job->state, JOB_REPLANNING);
    ck_assert(!job->saves);
}
END_TEST

START_TEST(a_loss_before_all_are_ready_is_another_replan)
{
    const struct job *job = running(2);
    reach(job, 7);
    must(lost("b"));
    must(left(job, 0));
    views[1].grantable = false;
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    struct device_ref refs[2] = {job->ranks[1].device, job->ranks[0].device};
    must(planned(job, refs, 2));
    must(ready_behind(job, 1, 7));
    must(lost("c"));
    ck_assert_int_eq(job->state, JOB_REPLANNING);
    must(left(job, 1));
    ck_assert_uint_eq(job->restarts, 2);
    ck_assert(job_left_executors(job));
}
END_TEST

START_TEST(who_asks_for_a_replan_is_in_the_history)
{
    const struct job *job = running(0);
    struct job_event asked = of(JOB_EVENT_REPLAN, job);
    asked.words = "ada: more nodes";
    must(asked);
    stands(job, "REPLANNING", "ReplanAsked", "asked for by ada: more nodes");
    must(asked); /* once is enough */
}
END_TEST

START_TEST(a_replan_of_a_job_that_waits_is_too_early_and_of_one_that_is_over_too_late)
{
    const struct job *job = job_in(JOB_PENDING);
    ck_assert_int_eq(apply(of(JOB_EVENT_REPLAN, job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is PENDING: it is too early for 'replan'");
    must(of(JOB_EVENT_CANCEL, job));
    ck_assert_int_eq(apply(of(JOB_EVENT_REPLAN, job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is CANCELLED: it is too late for 'replan'");
}
END_TEST

START_TEST(a_job_whose_executors_do_not_stay_is_not_moved)
{
    restarts_max = 1;
    const struct job *job = job_in(JOB_RUNNING);
    must(drained("b"));
    ck_assert_int_eq(job->state, JOB_RUNNING);
    ck_assert_int_eq(apply(of(JOB_EVENT_REPLAN, job)), -EINVAL);
    ck_assert_str_eq(err.text, "j-1 cannot be moved while it runs: its job file says "
                               "elastic.replan: false");
}
END_TEST

SUITE(replans)
{
    TCase *tcase = tcase_create("replans");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, those_that_are_left_get_their_devices_back_and_say_where_they_are);
    tcase_add_test(tcase, they_come_before_jobs_that_wait);
    tcase_add_loop_test(tcase, a_held_job_goes_on_where_executors_have_stayed, 0, 3);
    tcase_add_test(tcase, what_was_refused_lets_nobody_stay);
    tcase_add_test(tcase, a_budget_that_is_used_up_lets_go_of_those_that_stayed);
    tcase_add_test(tcase, a_job_that_is_cancelled_while_it_waits_lets_go_of_those_that_stayed);
    tcase_add_test(tcase, a_node_that_is_drained_gives_what_it_has_and_is_left);
    tcase_add_loop_test(tcase, a_node_that_is_drained_while_a_plan_is_searched_is_not_planned_for,
                        0, 2);
    tcase_add_test(tcase, what_stayed_on_a_node_that_is_drained_while_a_plan_is_searched_is_given);
    tcase_add_test(tcase, whoever_leaves_a_drained_node_saves_before);
    tcase_add_loop_test(tcase, a_loss_among_those_that_save_ends_the_saving, 0, 3);
    tcase_add_test(tcase, before_its_first_step_a_job_has_nothing_to_save);
    tcase_add_test(tcase, a_loss_before_all_are_ready_is_another_replan);
    tcase_add_test(tcase, who_asks_for_a_replan_is_in_the_history);
    tcase_add_test(tcase,
                   a_replan_of_a_job_that_waits_is_too_early_and_of_one_that_is_over_too_late);
    tcase_add_test(tcase, a_job_whose_executors_do_not_stay_is_not_moved);
    return suite_run("replans", tcase, NULL);
}
