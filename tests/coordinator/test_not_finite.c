/* test_not_finite.c - jobs whose steps have no finite loss or gradient, one after the other. */
#include "coordinator/jobs/jobs.h"

#include "tests/coordinator/job_fixture.h"

/* On workers a and b; its executors would stay when an epoch breaks. */
static const struct job *running(unsigned most)
{
    restarts_max = most;
    replans = true;
    return job_in(JOB_RUNNING);
}

static void stage(const struct job *job, uint64_t step)
{
    struct job_event event = of(JOB_EVENT_STAGED, job);
    event.step = step;
    must(event);
}

static void skip(const struct job *job, uint64_t from, uint64_t to)
{
    for (uint64_t step = from; step <= to; step++) {
        struct job_event event = of(JOB_EVENT_PROGRESS, job);
        event.progress.step = step;
        event.progress.skipped = true;
        must(event);
    }
}

/* As the service sees too many; then all executors stop. */
static void go_back(const struct job *job)
{
    must(of(JOB_EVENT_NOT_FINITE, job));
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event stopped = exited(job, rank, 1, "");
        stopped.exited.by_others = true;
        must(stopped);
    }
}

static void run_again(const struct job *job)
{
    schedule();
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event event = ready(job, rank);
        event.step = job->checkpoint_step;
        must(event);
    }
    ck_assert_int_eq(job->state, JOB_RUNNING);
}

START_TEST(they_are_counted_in_a_row)
{
    const struct job *job = running(20);
    skip(job, 1, 3);
    ck_assert_uint_eq(job->skipped, 3);
    ck_assert_uint_eq(job->skipped_from, 1);
    reach(job, 4);
    ck_assert_uint_eq(job->skipped, 0);
    skip(job, 5, 5);
    ck_assert_uint_eq(job->skipped, 1);
    ck_assert_uint_eq(job->skipped_from, 5);
}
END_TEST

START_TEST(the_job_goes_back_to_its_checkpoint_and_keeps_nothing_in_memory)
{
    const struct job *job = running(20);
    reach(job, 100);
    stage(job, 90);
    skip(job, 101, 110);
    must(of(JOB_EVENT_NOT_FINITE, job));
    stands(job, "FAILING", "NotFinite",
           "no step from 101 to 110 had a finite loss and gradient (elastic.max_skipped)");
    actions_are("store j-1, stop j-1");
    for (unsigned rank = 0; rank < 2; rank++)
        must(exited(job, rank, 143, ""));
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 20, from the checkpoint of step 90: no step from 101 to 110 had a finite "
           "loss and gradient (elastic.max_skipped)");
    actions_are("store j-1, release j-1");
    ck_assert(!job_left_executors(job));
    ck_assert_uint_eq(job->step, 90);
    ck_assert_uint_eq(job->skipped, 0);
    run_again(job);
    ck_assert_uint_eq(job->epoch, 2);
}
END_TEST

START_TEST(without_a_checkpoint_it_has_failed)
{
    const struct job *job = running(20);
    reach(job, 1);
    skip(job, 2, 11);
    go_back(job);
    stands(job, "FAILED", "NotFinite",
           "there is no listed checkpoint to go back to: no step from 2 to 11 had a finite "
           "loss and gradient (elastic.max_skipped)");
}
END_TEST

/* Whatever is skipped while the executors stop counts as little as the rest. */
START_TEST(a_job_that_gets_no_further_has_failed)
{
    const struct job *job = running(20);
    stage(job, 90);
    for (unsigned time = 1; time <= 4; time++) {
        reach(job, 100);
        skip(job, 101, 110 + time);
        go_back(job);
        if (time < 4)
            run_again(job);
    }
    stands(job, "FAILED", "NotFinite",
           "after 3 restarts without getting past step 100: no step from 101 to 114 had a finite "
           "loss "
           "and gradient (elastic.max_skipped)");
}
END_TEST

START_TEST(a_job_that_gets_further_may_go_back_again)
{
    const struct job *job = running(1);
    stage(job, 90);
    for (unsigned time = 1; time <= 9; time++) {
        reach(job, 100 + time);
        skip(job, 101 + time, 110 + time);
        go_back(job);
        ck_assert_uint_eq(job->restarts, 1);
        run_again(job);
    }
}
END_TEST

/* A worker is lost among such steps: what is done once more is counted once. */
START_TEST(steps_that_come_again_are_not_counted_twice)
{
    const struct job *job = running(20);
    reach(job, 100);
    skip(job, 101, 104);
    must(lost("b"));
    struct job_event left = exited(job, 0, 1, "");
    left.exited.by_others = true;
    must(left);
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event event = ready(job, rank);
        event.step = 102;
        must(event);
    }
    ck_assert_uint_eq(job->skipped, 2);
    skip(job, 103, 105);
    ck_assert_uint_eq(job->skipped, 5);
    ck_assert_uint_eq(job->skipped_from, 101);
}
END_TEST

SUITE(not_finite)
{
    TCase *tcase = tcase_create("not finite");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, they_are_counted_in_a_row);
    tcase_add_test(tcase, the_job_goes_back_to_its_checkpoint_and_keeps_nothing_in_memory);
    tcase_add_test(tcase, without_a_checkpoint_it_has_failed);
    tcase_add_test(tcase, a_job_that_gets_no_further_has_failed);
    tcase_add_test(tcase, a_job_that_gets_further_may_go_back_again);
    tcase_add_test(tcase, steps_that_come_again_are_not_counted_twice);
    return suite_run("not finite", tcase, NULL);
}
