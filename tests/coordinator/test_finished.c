/* test_finished.c - the end of a job: the word of one rank, and what others do meanwhile. */
#include "coordinator/jobs/jobs.h"

#include "tests/coordinator/job_fixture.h"

#include <math.h>

/* On workers a and b, with all steps but the last behind it. */
static const struct job *at_its_end(void)
{
    restarts_max = 2;
    replans = true;
    const struct job *job = job_in(JOB_RUNNING);
    reach(job, job->steps - 1);
    actions_are("");
    return job;
}

/* Of a rank that has nothing left to do, and knows of nothing that others have. */
static struct job_event finished(const struct job *job, unsigned rank)
{
    struct job_event event = exited(job, rank, 0, "");
    event.exited.step = job->steps;
    event.exited.finished = true;
    event.exited.loss = 1.25;
    return event;
}

/* Its executor stays, out of its epoch. */
static struct job_event left(const struct job *job, unsigned rank)
{
    struct job_event event = exited(job, rank, 1, "");
    event.exited.by_others = true;
    return event;
}

static void is_done(const struct job *job)
{
    stands(job, "DONE", "None", "");
    ck_assert_uint_eq(job->step, job->steps);
    ck_assert_double_eq(job->loss, 1.25);
}

START_TEST(all_say_so_and_may_let_go)
{
    const struct job *job = at_its_end();
    must(finished(job, 1));
    stands(job, "RUNNING", "None", "");
    actions_are("store j-1");
    must(finished(job, 0));
    is_done(job);
    actions_are("store j-1, drop j-1, release j-1");
}
END_TEST

START_TEST(the_word_of_one_is_enough)
{
    const struct job *job = at_its_end();
    must(finished(job, (unsigned)_i));
    must(lost(_i == 0 ? "b" : "a"));
    is_done(job);
    ck_assert_uint_eq(job->restarts, 0);
}
END_TEST

START_TEST(an_executor_that_dies_behind_that_word_costs_nothing)
{
    const struct job *job = at_its_end();
    must(finished(job, 0));
    must(exited(job, 1, 139, "killed by signal 9"));
    is_done(job);
}
END_TEST

/* Whether it crossed the loss, or was heard of later. */
START_TEST(a_word_that_comes_while_the_job_breaks_ends_it)
{
    const struct job *job = at_its_end();
    must(lost("b"));
    stands(job, "REPLANNING", "WorkerLost", "worker b was lost: silent for 5.00 s");
    must(finished(job, 0));
    is_done(job);
}
END_TEST

START_TEST(whose_executors_do_not_stay_is_ended_by_one_word_too)
{
    restarts_max = 2;
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 1, 139, "killed by signal 9"));
    ck_assert_int_eq(job->state, JOB_FAILING);
    must(finished(job, 0));
    is_done(job);
}
END_TEST

/* It has done its part, but what another one has is not known: then the others go on behind it. */
START_TEST(without_that_word_the_job_goes_on_from_what_is_kept)
{
    const struct job *job = at_its_end();
    must(exited(job, 1, 0, ""));
    must(lost("a"));
    stands(job, "PENDING", "RestartPending", "replan 1 of 2: worker a was lost: silent for 5.00 s");
    ck_assert(job_left_executors(job));
    views[0].grantable = false;
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    ranks_are(job, "b/0 c/0");
    ck_assert(!job->finished);
}
END_TEST

/* The epoch before it might have said it: in another one it must be said anew. */
START_TEST(it_counts_in_its_own_epoch)
{
    const struct job *job = at_its_end();
    struct job_event late = finished(job, 0);
    must(lost("b"));
    must(left(job, 0));
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ck_assert_int_lt(apply(late), 0);
    ck_assert(!job->finished);
}
END_TEST

START_TEST(a_loss_that_nobody_knows_is_not_said)
{
    const struct job *job = at_its_end();
    struct job_event event = finished(job, 0);
    event.exited.loss = NAN;
    must(event);
    ck_assert_double_eq(job->loss, 2.5); /* of the step before */
}
END_TEST

START_TEST(a_drained_node_is_not_left_for_what_is_over)
{
    const struct job *job = at_its_end();
    struct job_event drained = {.kind = JOB_EVENT_WORKER_DRAINS, .words = "repair"};
    drained.worker.name = "b";
    drained.worker.instance = 1;
    must(finished(job, 0));
    must(drained);
    stands(job, "RUNNING", "None", "");
    must(finished(job, 1));
    is_done(job);
}
END_TEST

/* ---- figures ---- */

static struct job_event step_of(const struct job *job, uint64_t step, double time_s)
{
    struct job_event event = of(JOB_EVENT_PROGRESS, job);
    event.progress.step = step;
    event.progress.loss = 2.5;
    event.progress.tokens_per_s = 100 / time_s; /* of the newest steps */
    event.progress.tokens = 100;
    event.progress.time_s = time_s;
    return event;
}

START_TEST(a_job_that_has_ended_was_as_fast_as_all_of_its_steps_together)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(step_of(job, 1, 3));
    must(step_of(job, 1, 3)); /* another rank has it, too */
    must(step_of(job, 2, 1));
    ck_assert_double_eq(job->tokens_per_s, 100);
    must(finished(job, 0));
    must(finished(job, 1));
    ck_assert_double_eq(job->tokens_per_s, 50);
}
END_TEST

START_TEST(a_job_that_has_done_nothing_has_no_loss)
{
    add_worker("a", HARDWARE_CPU, 1);
    const struct job *job = submit(2, 2, JOB_ANY);
    ck_assert(isnan(job->loss));
    add_worker("b", HARDWARE_CPU, 1);
    schedule();
    struct device_ref refs[] = {views[0].ref, views[1].ref};
    must(planned(job, refs, 2));
    must(ready(job, 0));
    must(ready(job, 1));
    reach(job, 1);
    ck_assert_double_eq(job->loss, 2.5);
    restarts_max = 0;
}
END_TEST

/* ---- a last step that cannot be saved ---- */

static struct job_event unsaved(const struct job *job, enum job_reason reason)
{
    struct job_event event = of(JOB_EVENT_UNSAVED, job);
    event.unsaved.reason = reason;
    event.words = "no room in /saves";
    return event;
}

static struct job_event staged(const struct job *job)
{
    struct job_event event = of(JOB_EVENT_STAGED, job);
    event.step = job->steps;
    return event;
}

START_TEST(it_waits_in_memory_until_it_can_be_saved)
{
    const struct job *job = at_its_end();
    must(unsaved(job, JOB_REASON_NO_SPACE));
    stands(job, "RUNNING", "NoSpace", "no room in /saves");
    must(unsaved(job, JOB_REASON_NOT_SAVED));
    stands(job, "RUNNING", "NotSaved", "no room in /saves");
    must(staged(job));
    stands(job, "RUNNING", "None", "");
    must(finished(job, 0));
    must(finished(job, 1));
    is_done(job);
}
END_TEST

START_TEST(what_was_given_up_has_failed_for_that_reason)
{
    const struct job *job = at_its_end();
    must(unsaved(job, JOB_REASON_NO_SPACE));
    struct job_event gave_up = exited(job, 0, 1, "tried 9 times");
    gave_up.exited.unsaved = true;
    must(gave_up);
    ck_assert_int_eq(job->state, JOB_FAILING);
    gave_up.rank = 1;
    must(gave_up);
    stands(job, "FAILED", "NoSpace", "rank 0 on a/0 failed: tried 9 times");
}
END_TEST

START_TEST(whoever_cancels_it_gives_it_up)
{
    const struct job *job = at_its_end();
    must(unsaved(job, JOB_REASON_NO_SPACE));
    must(cancelled(job));
    ck_assert_int_eq(job->state, JOB_FAILING);
    must(left(job, 0));
    must(left(job, 1));
    stands(job, "FAILED", "NoSpace", "cancelled by ada: no room in /saves");
}
END_TEST

/* The others have the state: they try it again. */
START_TEST(a_loss_meanwhile_is_a_loss_as_any_other)
{
    const struct job *job = at_its_end();
    must(unsaved(job, JOB_REASON_NO_SPACE));
    must(lost("b"));
    must(left(job, 0));
    stands(job, "PENDING", "RestartPending", "replan 1 of 2: worker b was lost: silent for 5.00 s");
}
END_TEST

SUITE(finished)
{
    TCase *tcase = tcase_create("finished");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, all_say_so_and_may_let_go);
    tcase_add_loop_test(tcase, the_word_of_one_is_enough, 0, 2);
    tcase_add_test(tcase, an_executor_that_dies_behind_that_word_costs_nothing);
    tcase_add_test(tcase, a_word_that_comes_while_the_job_breaks_ends_it);
    tcase_add_test(tcase, whose_executors_do_not_stay_is_ended_by_one_word_too);
    tcase_add_test(tcase, without_that_word_the_job_goes_on_from_what_is_kept);
    tcase_add_test(tcase, it_counts_in_its_own_epoch);
    tcase_add_test(tcase, a_loss_that_nobody_knows_is_not_said);
    tcase_add_test(tcase, a_drained_node_is_not_left_for_what_is_over);
    tcase_add_test(tcase, a_job_that_has_ended_was_as_fast_as_all_of_its_steps_together);
    tcase_add_test(tcase, a_job_that_has_done_nothing_has_no_loss);
    tcase_add_test(tcase, it_waits_in_memory_until_it_can_be_saved);
    tcase_add_test(tcase, what_was_given_up_has_failed_for_that_reason);
    tcase_add_test(tcase, whoever_cancels_it_gives_it_up);
    tcase_add_test(tcase, a_loss_meanwhile_is_a_loss_as_any_other);
    return suite_run("finished", tcase, NULL);
}
