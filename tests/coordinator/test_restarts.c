/* test_restarts.c - which jobs begin again when they broke, and how often. */
#include "coordinator/jobs/jobs.h"

#include "tests/coordinator/job_fixture.h"

#include <errno.h>

/* On workers a and b, which may begin again so often. */
static const struct job *running(unsigned most)
{
    restarts_max = most;
    return job_in(JOB_RUNNING);
}

/* Rank 0 fails by itself and the other is stopped. */
static void break_down(const struct job *job)
{
    struct job_event stopped = exited(job, 1, 1, "cancelled");
    stopped.exited.by_others = true;
    must(exited(job, 0, 139, "killed by signal 11"));
    must(stopped);
}

/* All ranks to RUNNING, on the devices that are free. */
static void run_again(const struct job *job)
{
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    must(ready(job, 0));
    must(ready(job, 1));
    ck_assert_int_eq(job->state, JOB_RUNNING);
}

START_TEST(a_job_that_lost_a_worker_begins_again_on_others)
{
    const struct job *job = running(2);
    reach(job, 7);
    must(lost("b"));
    stands(job, "FAILING", "WorkerLost", "worker b was lost: silent for 5.00 s");
    actions_are("store j-1, stop j-1");
    must(exited(job, 0, 143, ""));
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 2, from step 0: worker b was lost: silent for 5.00 s");
    actions_are("store j-1, release j-1");
    ck_assert_uint_eq(job->step, 0);
    ck_assert_uint_eq(job->restarts, 1);
    views[1].grantable = false;
    schedule();
    stands(job, "PENDING", "DevicesBusy",
           "it needs 2 devices of one kind; 1 of 2 are free; "
           "restart 1 of 2, from step 0: worker b was lost: silent for 5.00 s");
    add_worker("c", HARDWARE_CPU, 1);
    run_again(job);
    stands(job, "RUNNING", "None", "");
    ranks_are(job, "a/0 c/0");
    ck_assert_uint_eq(job->epoch, 2);
    ck_assert_str_eq(job->again, "");
}
END_TEST

START_TEST(a_budget_that_is_used_up_ends_the_job)
{
    const struct job *job = running(2);
    for (unsigned restart = 0; restart < 2; restart++) {
        must(lost("a"));
        must(lost("b"));
        ck_assert_int_eq(job->state, JOB_PENDING);
        run_again(job);
    }
    must(lost("a"));
    must(lost("b"));
    stands(job, "FAILED", "WorkerLost",
           "after 2 restarts without getting past step 0: worker a was lost: silent for 5.00 s");
    actions_are("store j-1, hold j-1, plan j-1, hold j-1, assign j-1, go j-1, stop j-1, "
                "release j-1");
}
END_TEST

START_TEST(a_job_that_may_not_begin_again_fails_as_it_did)
{
    const struct job *job = running(0);
    reach(job, 7);
    must(lost("a"));
    must(lost("b"));
    stands(job, "FAILED", "WorkerLost", "worker a was lost: silent for 5.00 s");
}
END_TEST

START_TEST(a_rank_that_gave_up_on_another_consumes_a_restart)
{
    const struct job *job = running(1);
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event gave_up = exited(job, rank, 1, "no answer for 30 s");
        gave_up.exited.by_others = true;
        must(gave_up);
    }
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 1, from step 0: rank 0 on a/0 failed: no answer for 30 s");
}
END_TEST

START_TEST(a_rank_that_held_up_the_others_says_nothing_about_the_job)
{
    const struct job *job = running(1);
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event ended = exited(job, rank, 1, "has held up 1 rank");
        ended.exited.stalled = rank == 0;
        ended.exited.by_others = rank == 1;
        must(ended);
    }
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 1, from step 0: rank 0 on a/0 stalled: has held up 1 rank");
}
END_TEST

static struct job_event out_of_memory(const struct job *job, const char *words, uint64_t memory_max)
{
    struct job_event event = exited(job, 1, 1, words);
    event.exited.out_of_memory = true;
    event.exited.memory_max = memory_max;
    return event;
}

static void peer_gives_up(const struct job *job)
{
    struct job_event gave_up = exited(job, 0, 1, "a peer is lost");
    gave_up.exited.by_others = true;
    must(gave_up);
}

/* Its next plan is another one, so it is no fault that comes again; the budget still ends it. */
START_TEST(a_rank_that_ran_out_of_memory_is_planned_with_less)
{
    const struct job *job = running(6);
    for (unsigned restart = 0; restart < 6; restart++) {
        must(out_of_memory(job, "cannot reserve memory: state 2.0 GB", 1800000000));
        peer_gives_up(job);
        ck_assert_int_eq(job->state, JOB_PENDING);
        ck_assert_uint_eq(job->faults, 0);
        run_again(job);
    }
    peer_gives_up(job);
    ck_assert_int_eq(job->reason, JOB_REASON_PEER_LOST);
    must(out_of_memory(job, "", 0));
    stands(job, "FAILED", "OutOfMemory",
           "after 6 restarts without getting past step 0: rank 1 on b/0 ran out of memory");
}
END_TEST

START_TEST(what_is_planned_after_a_loss_of_memory_is_said)
{
    const struct job *job = running(1);
    must(out_of_memory(job, "cannot reserve memory: state 2.0 GB", 1800000000));
    peer_gives_up(job);
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 1, from step 0: rank 1 on b/0 ran out of memory, and is planned with at "
           "most 1.7 GiB there: cannot reserve memory: state 2.0 GB");
}
END_TEST

START_TEST(a_budget_is_of_restarts_without_a_step)
{
    const struct job *job = running(2);
    for (unsigned step = 1; step <= 9; step++) {
        reach(job, step);
        must(lost("a"));
        must(lost("b"));
        ck_assert_int_eq(job->state, JOB_PENDING);
        ck_assert_uint_eq(job->restarts, 1);
        run_again(job);
    }
}
END_TEST

/* Two kills of a stranger, one after the other. */
START_TEST(a_fault_is_tried_again_a_few_times)
{
    const struct job *job = running(20);
    reach(job, 60);
    for (unsigned fault = 1; fault < 4; fault++) {
        break_down(job);
        ck_assert_int_eq(job->state, JOB_PENDING);
        ck_assert_uint_eq(job->restarts, fault);
        run_again(job);
        reach(job, 60);
    }
    break_down(job);
    stands(job, "FAILED", "RankFailed",
           "after 3 restarts without getting past step 60: "
           "rank 0 on a/0 failed: killed by signal 11");
}
END_TEST

START_TEST(a_fault_that_is_no_longer_in_the_way_does_not_count)
{
    const struct job *job = running(3);
    for (unsigned step = 60; step < 70; step++) {
        reach(job, step);
        for (unsigned fault = 1; fault < 4; fault++) {
            break_down(job);
            ck_assert_int_eq(job->state, JOB_PENDING);
            run_again(job);
        }
    }
}
END_TEST

/* Whoever was lost in between is no fault of the job's. */
START_TEST(faults_are_counted_apart_from_losses)
{
    const struct job *job = running(20);
    for (unsigned fault = 1; fault < 4; fault++) {
        break_down(job);
        run_again(job);
        must(lost("a"));
        must(lost("b"));
        run_again(job);
    }
    ck_assert_uint_eq(job->restarts, 6);
    break_down(job);
    stands(job, "FAILED", "RankFailed",
           "after 6 restarts without getting past step 0: "
           "rank 0 on a/0 failed: killed by signal 11");
}
END_TEST

/* Telemetry may come late, or never: the rank itself knows how far it was. */
START_TEST(a_rank_that_ends_says_how_far_it_was)
{
    const struct job *job = running(1);
    struct job_event event = exited(job, 0, 1, "no memory"), stopped = exited(job, 1, 1, "");
    event.exited.step = 9;
    stopped.exited.by_others = true;
    must(event);
    must(stopped);
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 1, from step 0: rank 0 on a/0 failed: no memory");
    ck_assert_uint_eq(job->reached_step, 9);
}
END_TEST

START_TEST(what_was_refused_is_not_tried_again)
{
    restarts_max = 5;
    const struct job *job = job_in(JOB_STARTING);
    struct job_event refused = exited(job, 0, 1, "worker 'a' runs another release");
    refused.exited.refused = JOB_REASON_PROGRAM_REFUSED;
    must(refused);
    must(exited(job, 1, 1, ""));
    stands(job, "FAILED", "ProgramRefused",
           "rank 0 on a/0 failed before it was ready: worker 'a' runs another release");
}
END_TEST

START_TEST(a_job_that_is_cancelled_while_it_fails_does_not_begin_again)
{
    const struct job *job = running(5);
    must(lost("b"));
    must(cancelled(job));
    stands(job, "CANCELLING", "Cancelled", "cancelled by ada");
    must(exited(job, 0, 143, ""));
    stands(job, "CANCELLED", "Cancelled", "cancelled by ada");
}
END_TEST

START_TEST(a_held_job_that_broke_waits_until_it_is_let_go)
{
    const struct job *job = running(5);
    struct job_event hold = of(JOB_EVENT_PAUSE, job);
    hold.words = "ada";
    must(lost("b"));
    must(hold);
    must(exited(job, 0, 143, ""));
    schedule();
    stands(job, "PENDING", "Held",
           "held by ada; restart 1 of 5, from step 0: worker b was lost: silent for 5.00 s");
    must(of(JOB_EVENT_RESUME, job));
    run_again(job);
}
END_TEST

static struct job_event staged(const struct job *job, uint64_t step)
{
    struct job_event event = of(JOB_EVENT_STAGED, job);
    event.step = step;
    return event;
}

START_TEST(a_job_with_a_checkpoint_begins_again_from_the_newest)
{
    const struct job *job = running(5);
    must(staged(job, 20));
    actions_are("store j-1");
    reach(job, 47);
    must(staged(job, 40));
    must(staged(job, 20)); /* told again: nothing new */
    must(lost("b"));
    must(staged(job, 45)); /* the rank that wrote it still lives */
    must(exited(job, 0, 143, ""));
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 5, from the checkpoint of step 45: "
           "worker b was lost: silent for 5.00 s");
    ck_assert_uint_eq(job->step, 45);
    ck_assert_uint_eq(job->checkpoint_step, 45);
    ck_assert_uint_eq(job->checkpoint_epoch, 1);
}
END_TEST

START_TEST(a_checkpoint_of_an_epoch_that_is_over_is_not_listed)
{
    const struct job *job = running(5);
    must(staged(job, 20));
    struct job_event late = staged(job, 40);
    must(lost("b"));
    must(exited(job, 0, 143, ""));
    ck_assert_int_eq(jobs_apply(jobs, &late, 0, &actions, &err), -ESTALE);
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    run_again(job);
    ck_assert_int_eq(jobs_apply(jobs, &late, 0, &actions, &err), -ESTALE);
    ck_assert_uint_eq(job->checkpoint_step, 20);
}
END_TEST

START_TEST(a_restart_survives_one_of_the_coordinator)
{
    const struct job *job = running(5);
    reach(job, 9);
    break_down(job);
    carry_out();
    jobs_actions_finish(&actions);
    struct job *stored = job_copy(job);
    jobs_destroy(jobs);
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), 0);
    job_destroy(stored);
    job = jobs_find(jobs, "j-1");
    actions_are("");
    ck_assert_uint_eq(job->reached_step, 9);
    ck_assert_uint_eq(job->faults, 1);
    run_again(job);
    reach(job, 9);
    break_down(job);
    ck_assert_uint_eq(job->faults, 2);
}
END_TEST

/* A job that has begun again from its checkpoint of step 60, with one of step 40 behind it. */
static const struct job *starting_from_60(void)
{
    const struct job *job = running(3);
    struct job_event staged = of(JOB_EVENT_STAGED, job);
    staged.step = 60;
    must(staged);
    must(lost("b"));
    must(exited(job, 0, 143, ""));
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    stands(job, "STARTING", "None", "");
    return job;
}

static void damage(const struct job *job, uint64_t older)
{
    struct job_event unlisted = of(JOB_EVENT_UNLISTED, job);
    unlisted.older.step = older;
    unlisted.older.epoch = older ? 1 : 0;
    must(unlisted);
    struct job_event found = exited(job, 0, 1, "it is damaged");
    found.exited.damaged = true;
    must(found);
    struct job_event stopped = exited(job, 1, 1, "cancelled");
    stopped.exited.by_others = true;
    must(stopped);
}

START_TEST(a_damaged_checkpoint_is_passed_over_for_the_one_before)
{
    const struct job *job = starting_from_60();
    damage(job, 40);
    stands(job, "PENDING", "RestartPending",
           "restart 2 of 3, from the checkpoint of step 40: rank 0 on a/0 failed before it was "
           "ready: it is damaged");
    ck_assert_uint_eq(job->checkpoint_step, 40);
    ck_assert_uint_eq(job->checkpoint_epoch, 1);
    ck_assert_uint_eq(job->step, 40);
}
END_TEST

START_TEST(without_an_older_checkpoint_it_does_not_begin_at_step_0)
{
    const struct job *job = starting_from_60();
    damage(job, 0);
    stands(
        job, "FAILED", "CheckpointDamaged",
        "after 1 restart without getting past step 60: no older checkpoint is listed; submitted "
        "again, it would start at step 0: rank 0 on a/0 failed before it was ready: it is damaged");
    ck_assert_uint_eq(job->checkpoint_step, 0);
}
END_TEST

START_TEST(a_job_that_goes_on_from_another_begins_again_where_that_one_was)
{
    origin_step = 40;
    const struct job *job = running(5);
    ck_assert_str_eq(job->origin, "/c/step-40.epoch-1");
    ck_assert_uint_eq(job->origin_samples, 320);
    ck_assert_uint_eq(job->step, 40);
    reach(job, 47);
    must(lost("b"));
    must(exited(job, 0, 143, ""));
    stands(job, "PENDING", "RestartPending",
           "restart 1 of 5, from the checkpoint of step 40: worker b was lost: silent for 5.00 s");
    ck_assert_uint_eq(job->step, 40);
    add_worker("c", HARDWARE_CPU, 1);
    views[1].grantable = false;
    run_again(job);
    must(staged(job, 60)); /* from now on it has one of its own */
    must(lost("c"));
    must(exited(job, 0, 143, ""));
    ck_assert_uint_eq(job->step, 60);
}
END_TEST

SUITE(restarts)
{
    TCase *tcase = tcase_create("restarts");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, a_job_that_lost_a_worker_begins_again_on_others);
    tcase_add_test(tcase, a_job_that_goes_on_from_another_begins_again_where_that_one_was);
    tcase_add_test(tcase, a_budget_that_is_used_up_ends_the_job);
    tcase_add_test(tcase, a_job_that_may_not_begin_again_fails_as_it_did);
    tcase_add_test(tcase, a_rank_that_gave_up_on_another_consumes_a_restart);
    tcase_add_test(tcase, a_rank_that_held_up_the_others_says_nothing_about_the_job);
    tcase_add_test(tcase, a_rank_that_ran_out_of_memory_is_planned_with_less);
    tcase_add_test(tcase, what_is_planned_after_a_loss_of_memory_is_said);
    tcase_add_test(tcase, a_budget_is_of_restarts_without_a_step);
    tcase_add_test(tcase, a_fault_is_tried_again_a_few_times);
    tcase_add_test(tcase, a_fault_that_is_no_longer_in_the_way_does_not_count);
    tcase_add_test(tcase, faults_are_counted_apart_from_losses);
    tcase_add_test(tcase, a_rank_that_ends_says_how_far_it_was);
    tcase_add_test(tcase, what_was_refused_is_not_tried_again);
    tcase_add_test(tcase, a_job_that_is_cancelled_while_it_fails_does_not_begin_again);
    tcase_add_test(tcase, a_held_job_that_broke_waits_until_it_is_let_go);
    tcase_add_test(tcase, a_job_with_a_checkpoint_begins_again_from_the_newest);
    tcase_add_test(tcase, a_checkpoint_of_an_epoch_that_is_over_is_not_listed);
    tcase_add_test(tcase, a_restart_survives_one_of_the_coordinator);
    tcase_add_test(tcase, a_damaged_checkpoint_is_passed_over_for_the_one_before);
    tcase_add_test(tcase, without_an_older_checkpoint_it_does_not_begin_at_step_0);
    return suite_run("restarts", tcase, NULL);
}
