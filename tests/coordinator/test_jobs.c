/* test_jobs.c - a job's way from submission to its end. */
#include "coordinator/jobs/jobs.h"

#include <errno.h>

#include "tests/coordinator/job_fixture.h"

START_TEST(a_job_goes_from_the_queue_to_its_end)
{
    add_worker("a", HARDWARE_CPU, 2);
    const struct job *job = submit(1, 8, JOB_ANY);
    ck_assert_str_eq(job->id, "j-1");
    actions_are("store j-1");
    schedule();
    stands(job, "PLANNING", "None", "");
    ck_assert_uint_eq(job->epoch, 1);
    actions_are("store j-1, hold j-1, plan j-1");
    struct device_ref refs[] = {views[1].ref, views[0].ref};
    must(planned(job, refs, 2));
    stands(job, "STARTING", "None", "");
    ranks_are(job, "a/1 a/0");
    actions_are("store j-1, hold j-1, assign j-1");
    must(ready(job, 1));
    actions_are("");
    must(ready(job, 0));
    stands(job, "RUNNING", "None", "");
    ck_assert_uint_eq(job->started_ms, 3000);
    actions_are("store j-1, go j-1");
    struct job_event step = of(JOB_EVENT_PROGRESS, job);
    step.progress.step = 7;
    step.progress.loss = 4.5;
    must(step);
    ck_assert_uint_eq(job->step, 7);
    ck_assert_double_eq(job->loss, 4.5);
    actions_are("");
    must(exited(job, 0, 0, ""));
    stands(job, "RUNNING", "None", "");
    actions_are("store j-1");
    must(exited(job, 1, 0, ""));
    stands(job, "DONE", "None", "");
    actions_are("store j-1, release j-1");
    ck_assert_uint_eq(job->ended_ms, 3000);
    ranks_are(job, "a/1 a/0");
}
END_TEST

START_TEST(devices_that_the_plan_leaves_are_given_back)
{
    add_worker("a", HARDWARE_CPU, 3);
    const struct job *first = submit(1, 3, JOB_ANY), *second = submit(1, 1, JOB_ANY);
    schedule();
    stands(second, "PENDING", "DevicesBusy", "it needs 1 device; 0 of 3 are free");
    carry_out();
    jobs_actions_finish(&actions);
    must(planned(first, &views[1].ref, 1));
    actions_are("store j-1, hold j-1, assign j-1");
    schedule();
    ranks_are(second, "a/0");
}
END_TEST

START_TEST(a_plan_over_other_devices_is_refused)
{
    const struct job *job = job_in(JOB_PLANNING);
    struct device_ref refs[] = {views[0].ref, views[0].ref};
    ck_assert_int_eq(apply(planned(job, refs, 2)), -EINVAL);
    ck_assert_str_eq(err.text, "j-1: rank 1 of the plan is on a/0, which was not granted or is "
                               "another rank's");
    refs[1].instance = 2;
    refs[1].worker[0] = 'b';
    ck_assert_int_eq(apply(planned(job, refs, 2)), -EINVAL);
    ck_assert_int_eq(apply(planned(job, refs, 1)), -EINVAL);
    ck_assert_str_eq(err.text, "j-1: the plan uses 1 devices of 2 granted, at least 2");
    stands(job, "PLANNING", "None", "");
    ranks_are(job, "a/0 b/0");
    actions_are("");
}
END_TEST

START_TEST(a_job_that_never_fits_fails_with_the_reason)
{
    const struct job *job = job_in(JOB_PLANNING);
    struct job_event event = of(JOB_EVENT_UNFIT, job);
    event.devices_needed = 3;
    event.words = "25 heads do not divide by 2";
    must(event);
    event.kind = JOB_EVENT_REFUSED;
    must(event); /* repeated in other words */
    stands(job, "FAILED", "InfeasibleMemory", "25 heads do not divide by 2");
    actions_are("store j-1, release j-1");
}
END_TEST

START_TEST(an_executor_that_fails_takes_the_job_down_in_order)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 1, 139, "segmentation fault\n"));
    stands(job, "FAILING", "RankFailed", "rank 1 on b/0 failed: segmentation fault?");
    actions_are("store j-1, stop j-1");
    must(exited(job, 0, 143, "stopped"));
    stands(job, "FAILED", "RankFailed", "rank 1 on b/0 failed: segmentation fault?");
    actions_are("store j-1, release j-1");
}
END_TEST

/* Survivors hear of a dead rank from its closed connection, often before its worker's word comes.
 */
START_TEST(the_rank_that_died_is_the_reason_not_those_that_gave_up_on_it)
{
    const struct job *job = job_in(JOB_RUNNING);
    struct job_event gave_up = exited(job, 0, 1, "rank 1 is gone");
    gave_up.exited.by_others = true;
    must(gave_up);
    stands(job, "FAILING", "PeerLost", "rank 0 on a/0 failed: rank 1 is gone");
    must(exited(job, 1, 1, "killed by signal 9"));
    stands(job, "FAILED", "RankFailed", "rank 1 on b/0 failed: killed by signal 9");
}
END_TEST

START_TEST(a_rank_that_is_stopped_after_a_fault_is_not_the_reason)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 1, 1, "killed by signal 9"));
    struct job_event told = exited(job, 0, 1, "cancelled");
    told.exited.by_others = true;
    must(told);
    stands(job, "FAILED", "RankFailed", "rank 1 on b/0 failed: killed by signal 9");
}
END_TEST

START_TEST(a_reason_keeps_whole_characters_only)
{
    char words[JOB_WORDS_SIZE + 8] = "", *end = words;
    const struct job *job = job_in(JOB_RUNNING);
    while (end < words + JOB_WORDS_SIZE)
        end = stpcpy(end, "\u00b7");
    must(exited(job, 1, 1, words));
    /* "rank 1 on b/0 failed: " and then pairs of bytes: the last has no room. */
    size_t length = strlen(job->words);
    ck_assert_uint_eq(length, JOB_WORDS_SIZE - 2);
    ck_assert_str_eq(job->words + length - 4, "\u00b7\u00b7");
}
END_TEST

START_TEST(an_executor_that_ends_before_it_is_ready_failed)
{
    const struct job *job = job_in(JOB_STARTING);
    must(exited(job, 0, 0, ""));
    stands(job, "FAILING", "RankFailed", "rank 0 on a/0 exited with status 0 before it was ready");
    must(ready(job, 1));
    stands(job, "FAILING", "RankFailed", "rank 0 on a/0 exited with status 0 before it was ready");
}
END_TEST

START_TEST(a_lost_worker_fails_the_job_when_the_others_have_stopped)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(lost("c"));
    actions_are("");
    must(lost("b"));
    stands(job, "FAILING", "WorkerLost", "worker b was lost: silent for 5.00 s");
    actions_are("store j-1, stop j-1");
    struct device_ref held[2];
    ck_assert_uint_eq(job_devices(job, held), 1);
    ck_assert_str_eq(held[0].worker, "a");
    must(lost("a"));
    stands(job, "FAILED", "WorkerLost", "worker b was lost: silent for 5.00 s");
    actions_are("store j-1, release j-1");
}
END_TEST

START_TEST(a_worker_lost_while_planning_puts_the_job_back)
{
    const struct job *job = job_in(JOB_PLANNING);
    must(lost("a"));
    stands(job, "PENDING", "WorkerLost", "worker a was lost: silent for 5.00 s");
    actions_are("store j-1, release j-1");
    struct job_event late = planned(job, &views[0].ref, 1);
    ck_assert_int_eq(apply(late), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is PENDING: it is too late for 'planned'");
}
END_TEST

START_TEST(a_worker_lost_after_its_ranks_ended_well_does_no_harm)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 1, 0, ""));
    must(lost("b"));
    stands(job, "RUNNING", "None", "");
    must(exited(job, 0, 0, ""));
    stands(job, "DONE", "None", "");
}
END_TEST

/* Where a cancel finds the job, what it leads to, and the actions. */
static const struct {
    enum job_state from;
    const char *to, *actions;
} cancels[] = {
    {JOB_PENDING, "CANCELLED", "store j-1"},
    {JOB_PLANNING, "CANCELLED", "store j-1, release j-1"},
    {JOB_STARTING, "CANCELLING", "store j-1, stop j-1"},
    {JOB_RUNNING, "CANCELLING", "store j-1, stop j-1"},
};

START_TEST(a_cancelled_job_keeps_its_devices_until_its_executors_are_gone)
{
    const struct job *job = job_in(cancels[_i].from);
    must(cancelled(job));
    stands(job, cancels[_i].to, "Cancelled", "cancelled by ada");
    actions_are(cancels[_i].actions);
    must(cancelled(job));
    actions_are("");
    if (job->state == JOB_CANCELLING) {
        must(exited(job, 0, 143, ""));
        must(exited(job, 1, 9, ""));
        actions_are("store j-1, release j-1");
    }
    stands(job, "CANCELLED", "Cancelled", "cancelled by ada");
    ck_assert(job_ended(job));
}
END_TEST

START_TEST(what_ended_stays_ended)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 0, 0, ""));
    must(exited(job, 1, 0, ""));
    jobs_actions_finish(&actions);
    ck_assert_int_eq(apply(cancelled(job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is DONE: it is too late for 'cancel'");
    must(exited(job, 1, 1, ""));
    must(lost("a"));
    stands(job, "DONE", "None", "");
    actions_are("");
}
END_TEST

START_TEST(a_message_of_another_epoch_is_refused)
{
    const struct job *job = job_in(JOB_RUNNING);
    struct job_event event = exited(job, 0, 1, "");
    event.epoch = 7;
    ck_assert_int_eq(apply(event), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is in epoch 1: 'exited' of epoch 7 is refused");
    stands(job, "RUNNING", "None", "");
}
END_TEST

START_TEST(a_repeated_message_is_harmless)
{
    const struct job *job = job_in(JOB_STARTING);
    must(ready(job, 0));
    must(ready(job, 0));
    stands(job, "STARTING", "None", "");
    must(ready(job, 1));
    must(ready(job, 1));
    must(planned(job, &views[0].ref, 1));
    must(exited(job, 0, 0, ""));
    must(exited(job, 0, 3, ""));
    stands(job, "RUNNING", "None", "");
    ck_assert_int_eq(apply(exited(job, 2, 0, "")), -EINVAL);
    ck_assert_str_eq(err.text, "j-1 has no rank 2, its ranks are 0 to 1");
    ck_assert_int_eq(apply((struct job_event){.kind = JOB_EVENT_CANCEL, .job = "j-9"}), -ENOENT);
}
END_TEST

/* A stored state, and what a coordinator that starts has to do about it. */
static const struct {
    enum job_state state;
    const char *actions;
} resumed[] = {
    {JOB_PENDING, ""},
    {JOB_PLANNING, "hold j-1, plan j-1"},
    {JOB_STARTING, "hold j-1, assign j-1"},
    {JOB_RUNNING, "hold j-1, go j-1"},
};

START_TEST(a_restored_job_goes_on_where_it_was)
{
    const struct job *job = job_in(resumed[_i].state);
    struct job *stored = job_copy(job);
    jobs_destroy(jobs);
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), 0);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), -EEXIST);
    job_destroy(stored);
    actions_are(resumed[_i].actions);
    ck_assert_str_eq(jobs_find(jobs, "j-1")->text, "name: gpt");
    ck_assert_str_eq(submit(1, 1, JOB_ANY)->id, "j-2");
}
END_TEST

SUITE(jobs)
{
    TCase *tcase = tcase_create("jobs");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, a_job_goes_from_the_queue_to_its_end);
    tcase_add_test(tcase, devices_that_the_plan_leaves_are_given_back);
    tcase_add_test(tcase, a_plan_over_other_devices_is_refused);
    tcase_add_test(tcase, a_job_that_never_fits_fails_with_the_reason);
    tcase_add_test(tcase, an_executor_that_fails_takes_the_job_down_in_order);
    tcase_add_test(tcase, the_rank_that_died_is_the_reason_not_those_that_gave_up_on_it);
    tcase_add_test(tcase, a_rank_that_is_stopped_after_a_fault_is_not_the_reason);
    tcase_add_test(tcase, a_reason_keeps_whole_characters_only);
    tcase_add_test(tcase, an_executor_that_ends_before_it_is_ready_failed);
    tcase_add_test(tcase, a_lost_worker_fails_the_job_when_the_others_have_stopped);
    tcase_add_test(tcase, a_worker_lost_while_planning_puts_the_job_back);
    tcase_add_test(tcase, a_worker_lost_after_its_ranks_ended_well_does_no_harm);
    tcase_add_loop_test(tcase, a_cancelled_job_keeps_its_devices_until_its_executors_are_gone, 0,
                        sizeof cancels / sizeof *cancels);
    tcase_add_test(tcase, what_ended_stays_ended);
    tcase_add_test(tcase, a_message_of_another_epoch_is_refused);
    tcase_add_test(tcase, a_repeated_message_is_harmless);
    tcase_add_loop_test(tcase, a_restored_job_goes_on_where_it_was, 0,
                        sizeof resumed / sizeof *resumed);
    return suite_run("jobs", tcase, NULL);
}
