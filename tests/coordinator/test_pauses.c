/* test_pauses.c - jobs that users hold and let go. */
#include "coordinator/jobs/jobs.h"

#include <errno.h>

#include "tests/coordinator/job_fixture.h"

static struct job_event held(const struct job *job)
{
    struct job_event event = of(JOB_EVENT_PAUSE, job);
    event.words = "ada: for the night";
    return event;
}

static struct job_event let_go(const struct job *job)
{
    return of(JOB_EVENT_RESUME, job);
}

static struct job_event paused(const struct job *job, unsigned rank, uint32_t number)
{
    struct job_event event = of(JOB_EVENT_PAUSED, job);
    event.rank = rank;
    event.paused.number = number;
    event.paused.step = job->step;
    return event;
}

/* On workers a and b, with all ranks in their first pause. */
static const struct job *paused_job(void)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    must(paused(job, 0, 1));
    must(paused(job, 1, 1));
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
    carry_out();
    jobs_actions_finish(&actions);
    return job;
}

START_TEST(a_running_job_is_paused_once_all_its_ranks_are)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    stands(job, "PAUSING", "Held", "paused by ada: for the night");
    actions_are("store j-1, go j-1, pause j-1");
    must(paused(job, 1, 1));
    must(paused(job, 1, 1));
    stands(job, "PAUSING", "Held", "paused by ada: for the night");
    actions_are("");
    must(paused(job, 0, 1));
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
    actions_are("store j-1");
    struct device_ref refs[2];
    ck_assert_uint_eq(job_devices(job, refs), 2);
    must(let_go(job));
    stands(job, "RUNNING", "None", "");
    actions_are("store j-1, go j-1");
    ck_assert_uint_eq(job->resumes, 1);
}
END_TEST

START_TEST(what_is_asked_for_twice_is_done_once)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(let_go(job));
    stands(job, "RUNNING", "None", "");
    must(held(job));
    must(held(job));
    ck_assert_uint_eq(job->pauses, 1);
    must(paused(job, 0, 1));
    must(paused(job, 1, 1));
    must(held(job));
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
    must(let_go(job));
    must(let_go(job));
    stands(job, "RUNNING", "None", "");
    ck_assert_uint_eq(job->pauses, 1);
}
END_TEST

/* A rank that has paused must hear that the pause is over, so none is called off half-way. */
START_TEST(a_job_let_go_while_it_pauses_goes_on_when_all_have_paused)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    must(paused(job, 0, 1));
    must(let_go(job));
    ck_assert_int_eq(job->state, JOB_PAUSING);
    jobs_actions_finish(&actions);
    must(paused(job, 1, 1));
    stands(job, "RUNNING", "None", "");
    actions_are("store j-1, go j-1");
}
END_TEST

START_TEST(a_late_word_of_an_older_pause_does_not_count)
{
    const struct job *job = paused_job();
    must(let_go(job));
    must(paused(job, 0, 1));
    stands(job, "RUNNING", "None", "");
    must(held(job));
    must(paused(job, 0, 2));
    must(paused(job, 1, 1));
    stands(job, "PAUSING", "Held", "paused by ada: for the night");
    must(paused(job, 1, 2));
    ck_assert_int_eq(job->state, JOB_PAUSED);
}
END_TEST

START_TEST(a_job_whose_last_step_comes_first_is_done)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    must(exited(job, 0, 0, ""));
    must(exited(job, 1, 0, ""));
    stands(job, "DONE", "None", "");
}
END_TEST

START_TEST(a_rank_that_ends_in_a_pause_has_failed)
{
    const struct job *job = paused_job();
    must(exited(job, 1, 0, ""));
    stands(job, "FAILING", "RankFailed", "rank 1 on b/0 exited with status 0 while it was paused");
    actions_are("store j-1, stop j-1");
}
END_TEST

START_TEST(a_paused_job_loses_its_worker_as_one_that_runs)
{
    const struct job *job = paused_job();
    must(lost("a"));
    stands(job, "FAILING", "WorkerLost", "worker a was lost: silent for 5.00 s");
    actions_are("store j-1, stop j-1");
}
END_TEST

START_TEST(a_paused_job_is_not_replanned_and_keeps_its_devices)
{
    replans = true;
    const struct job *job = paused_job();
    ck_assert_int_eq(apply(of(JOB_EVENT_REPLAN, job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is paused by ada: for the night, and keeps its devices: "
                               "resume it first");
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
}
END_TEST

/* It is in the memory of executors, who would keep it for a few minutes only. */
START_TEST(a_paused_job_that_loses_a_node_takes_what_it_has_to_another)
{
    replans = true;
    restarts_max = 1;
    const struct job *job = paused_job();
    struct job_event left = exited(job, 1, 1, "");
    left.exited.by_others = true;
    must(lost("a"));
    views[0].grantable = false;
    must(left);
    ck_assert_int_eq(job->state, JOB_PENDING);
    schedule();
    stands(job, "PENDING", "Held",
           "held by ada: for the night; replan 1 of 1: worker a was lost: silent for 5.00 s");
    const struct job *next = submit(1, 1, JOB_ANY);
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    ck_assert_int_eq(next->state, JOB_PENDING);
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ranks_are(job, "b/0 c/0");
    struct device_ref refs[] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    must(ready(job, 0));
    must(ready(job, 1));
    stands(job, "PAUSING", "Held", "paused by ada: for the night");
}
END_TEST

START_TEST(a_paused_job_is_cancelled_as_one_that_runs)
{
    const struct job *job = paused_job();
    must(cancelled(job));
    stands(job, "CANCELLING", "Cancelled", "cancelled by ada");
    actions_are("store j-1, stop j-1");
    must(exited(job, 0, 143, ""));
    must(exited(job, 1, 143, ""));
    stands(job, "CANCELLED", "Cancelled", "cancelled by ada");
    ck_assert_int_eq(apply(held(job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is CANCELLED: it is too late for 'pause'");
    ck_assert_int_eq(apply(let_go(job)), -ESTALE);
}
END_TEST

START_TEST(a_held_job_is_granted_nothing_and_keeps_nobody_waiting)
{
    add_worker("a", HARDWARE_CPU, 2);
    const struct job *first = submit(2, 2, JOB_ANY), *second = submit(1, 1, JOB_ANY);
    must(held(first));
    stands(first, "PENDING", "Held", "held by ada: for the night");
    schedule();
    stands(first, "PENDING", "Held", "held by ada: for the night");
    ck_assert_int_eq(second->state, JOB_PLANNING);
    must(let_go(first));
    schedule();
    stands(first, "PENDING", "DevicesBusy", "it needs 2 devices of one kind; 1 of 2 are free");
}
END_TEST

START_TEST(a_job_held_while_it_is_planned_gives_its_devices_back)
{
    const struct job *job = job_in(JOB_PLANNING);
    must(held(job));
    stands(job, "PENDING", "Held", "held by ada: for the night");
    actions_are("store j-1, release j-1");
    ck_assert_int_eq(apply(planned(job, &views[0].ref, 1)), -ESTALE);
    must(let_go(job));
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ck_assert_uint_eq(job->epoch, 2);
}
END_TEST

START_TEST(a_job_held_while_it_starts_pauses_as_soon_as_it_runs)
{
    const struct job *job = job_in(JOB_STARTING);
    must(held(job));
    stands(job, "STARTING", "None", "");
    actions_are("store j-1");
    must(ready(job, 0));
    must(ready(job, 1));
    stands(job, "PAUSING", "Held", "paused by ada: for the night");
    actions_are("store j-1, go j-1, go j-1, pause j-1");
}
END_TEST

START_TEST(a_coordinator_that_starts_again_pauses_what_was_pausing)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    if (_i == 1) {
        must(paused(job, 0, 1));
        must(paused(job, 1, 1));
    }
    struct job *stored = job_copy(job);
    jobs_destroy(jobs);
    jobs_actions_finish(&actions);
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), 0);
    job_destroy(stored);
    job = jobs_find(jobs, "j-1");
    actions_are(_i == 1 ? "hold j-1" : "hold j-1, go j-1, pause j-1");
    if (_i == 0) {
        must(paused(job, 0, 1));
        must(paused(job, 1, 1));
    }
    ck_assert_int_eq(job->state, JOB_PAUSED);
    must(let_go(job));
    stands(job, "RUNNING", "None", "");
}
END_TEST

static struct job_event released(const struct job *job)
{
    struct job_event event = held(job);
    event.release = true;
    return event;
}

static struct job_event saved(const struct job *job, uint64_t step)
{
    struct job_event event = of(JOB_EVENT_STAGED, job);
    event.step = step;
    return event;
}

/* Behind step 7, which is saved; its executors are being stopped. */
static const struct job *releasing_job(void)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(released(job));
    must(saved(job, 7));
    must(paused(job, 0, 1));
    must(paused(job, 1, 1));
    stands(job, "RELEASING", "Held", "paused by ada: for the night");
    actions_are("store j-1, go j-1, pause j-1, stop j-1");
    return job;
}

START_TEST(a_job_that_is_saved_gives_its_devices_back)
{
    const struct job *job = releasing_job();
    must(exited(job, 0, 143, ""));
    ck_assert_int_eq(job->state, JOB_RELEASING);
    jobs_actions_finish(&actions);
    must(exited(job, 1, 143, ""));
    stands(job, "PENDING", "Held", "paused by ada: for the night");
    actions_are("store j-1, release j-1");
    ck_assert_uint_eq(job->step, 7);
    const struct job *other = submit(2, 2, JOB_ANY);
    schedule();
    ck_assert_int_eq(other->state, JOB_PLANNING);
    must(let_go(job));
    schedule();
    stands(job, "PENDING", "DevicesBusy", "it needs 2 devices of one kind; 0 of 2 are free");
    must(cancelled(other));
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ck_assert_uint_eq(job->epoch, 2);
    ck_assert_uint_eq(job->checkpoint_step, 7);
    ck_assert_uint_eq(job->restarts, 0);
}
END_TEST

START_TEST(who_would_resume_an_ended_job_is_told_how_it_goes_on)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(saved(job, 6));
    reach(job, 7);
    must(exited(job, 0, 0, ""));
    must(exited(job, 1, 0, ""));
    struct job_event resumed = let_go(job);
    ck_assert_int_eq(jobs_apply(jobs, &resumed, 0, &actions, &err), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is DONE: it is too late for 'resume'; its step 6 is saved, and "
                               "'gimbal submit --from j-1' goes on from there");
}
END_TEST

START_TEST(a_job_that_could_not_be_saved_keeps_its_devices)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(saved(job, 6));
    reach(job, 7);
    must(released(job));
    must(paused(job, 0, 1));
    must(paused(job, 1, 1));
    stands(job, "PAUSED", "Held",
           "paused by ada: for the night; it keeps its devices: step 7 could not be saved");
    must(let_go(job));
    stands(job, "RUNNING", "None", "");
    must(held(job)); /* not to give them back, this time */
    must(paused(job, 0, 2));
    must(paused(job, 1, 2));
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
}
END_TEST

START_TEST(a_paused_job_may_give_its_devices_back_later)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(held(job));
    must(saved(job, 7));
    must(paused(job, 0, 1));
    must(paused(job, 1, 1));
    ck_assert_int_eq(job->state, JOB_PAUSED);
    must(released(job));
    stands(job, "RELEASING", "Held", "paused by ada: for the night");
}
END_TEST

START_TEST(a_job_let_go_while_it_gives_its_devices_back_is_next_for_them)
{
    const struct job *job = releasing_job();
    must(let_go(job));
    must(exited(job, 0, 143, ""));
    must(exited(job, 1, 143, ""));
    ck_assert_int_eq(job->state, JOB_PENDING);
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
}
END_TEST

START_TEST(whatever_ends_its_ranks_a_job_that_is_saved_loses_nothing)
{
    const struct job *job = releasing_job();
    must(exited(job, 0, 1, "killed"));
    must(lost("b"));
    stands(job, "PENDING", "Held", "paused by ada: for the night");
    ck_assert_uint_eq(job->step, 7);
    ck_assert_uint_eq(job->restarts, 0);
}
END_TEST

START_TEST(a_job_is_cancelled_while_it_gives_its_devices_back)
{
    const struct job *job = releasing_job();
    must(cancelled(job));
    stands(job, "CANCELLING", "Cancelled", "cancelled by ada");
    must(exited(job, 0, 143, ""));
    must(exited(job, 1, 143, ""));
    stands(job, "CANCELLED", "Cancelled", "cancelled by ada");
}
END_TEST

START_TEST(a_coordinator_that_starts_again_goes_on_giving_devices_back)
{
    struct job *stored = job_copy(releasing_job());
    jobs_destroy(jobs);
    jobs_actions_finish(&actions);
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), 0);
    job_destroy(stored);
    actions_are("hold j-1, stop j-1");
}
END_TEST

START_TEST(progress_of_the_last_steps_is_heard_in_a_pause)
{
    const struct job *job = paused_job();
    struct job_event step = of(JOB_EVENT_PROGRESS, job);
    step.progress.step = 7;
    must(step);
    ck_assert_uint_eq(job->step, 7);
    stands(job, "PAUSED", "Held", "paused by ada: for the night");
}
END_TEST

SUITE(pauses)
{
    TCase *tcase = tcase_create("pauses");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, a_running_job_is_paused_once_all_its_ranks_are);
    tcase_add_test(tcase, what_is_asked_for_twice_is_done_once);
    tcase_add_test(tcase, a_job_let_go_while_it_pauses_goes_on_when_all_have_paused);
    tcase_add_test(tcase, a_late_word_of_an_older_pause_does_not_count);
    tcase_add_test(tcase, a_job_whose_last_step_comes_first_is_done);
    tcase_add_test(tcase, a_rank_that_ends_in_a_pause_has_failed);
    tcase_add_test(tcase, a_paused_job_loses_its_worker_as_one_that_runs);
    tcase_add_test(tcase, a_paused_job_is_not_replanned_and_keeps_its_devices);
    tcase_add_test(tcase, a_paused_job_that_loses_a_node_takes_what_it_has_to_another);
    tcase_add_test(tcase, a_paused_job_is_cancelled_as_one_that_runs);
    tcase_add_test(tcase, a_held_job_is_granted_nothing_and_keeps_nobody_waiting);
    tcase_add_test(tcase, a_job_held_while_it_is_planned_gives_its_devices_back);
    tcase_add_test(tcase, a_job_held_while_it_starts_pauses_as_soon_as_it_runs);
    tcase_add_loop_test(tcase, a_coordinator_that_starts_again_pauses_what_was_pausing, 0, 2);
    tcase_add_test(tcase, a_job_that_is_saved_gives_its_devices_back);
    tcase_add_test(tcase, who_would_resume_an_ended_job_is_told_how_it_goes_on);
    tcase_add_test(tcase, a_job_that_could_not_be_saved_keeps_its_devices);
    tcase_add_test(tcase, a_paused_job_may_give_its_devices_back_later);
    tcase_add_test(tcase, a_job_let_go_while_it_gives_its_devices_back_is_next_for_them);
    tcase_add_test(tcase, whatever_ends_its_ranks_a_job_that_is_saved_loses_nothing);
    tcase_add_test(tcase, a_job_is_cancelled_while_it_gives_its_devices_back);
    tcase_add_test(tcase, a_coordinator_that_starts_again_goes_on_giving_devices_back);
    tcase_add_test(tcase, progress_of_the_last_steps_is_heard_in_a_pause);
    return suite_run("pauses", tcase, NULL);
}
