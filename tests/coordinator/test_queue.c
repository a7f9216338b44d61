/* test_queue.c - what is accepted, and who is granted which devices. */
#include "coordinator/jobs/jobs.h"

#include <errno.h>

#include "tests/coordinator/job_fixture.h"

START_TEST(the_queue_is_first_in_first_out)
{
    add_worker("a", HARDWARE_CPU, 4);
    const struct job *first = submit(3, 3, JOB_ANY), *second = submit(2, 2, JOB_ANY),
                     *third = submit(1, 1, JOB_ANY);
    schedule();
    stands(first, "PLANNING", "None", "");
    stands(second, "PENDING", "DevicesBusy", "it needs 2 devices of one kind; 1 of 4 are free");
    stands(third, "PENDING", "WaitingForOthers", "it is behind j-2");
    actions_are("store j-1, hold j-1, plan j-1, store j-2, store j-3");
    schedule();
    actions_are("");
    must(cancelled(first));
    schedule();
    stands(second, "PLANNING", "None", "");
    stands(third, "PLANNING", "None", "");
}
END_TEST

START_TEST(a_job_too_large_for_the_cluster_blocks_nobody)
{
    add_worker("a", HARDWARE_CPU, 2);
    const struct job *large = submit(3, 3, JOB_ANY), *gpus = submit(1, 1, JOB_GPU),
                     *small = submit(1, 1, JOB_ANY);
    schedule();
    stands(large, "PENDING", "TooFewDevices",
           "it needs 3 devices of one kind, but the cluster has only 2");
    stands(gpus, "PENDING", "NoDevices", "it needs 1 GPU, but no worker offers any");
    stands(small, "PLANNING", "None", "");
}
END_TEST

START_TEST(jobs_of_another_kind_of_device_pass)
{
    add_worker("a", HARDWARE_GPU, 2);
    add_worker("b", HARDWARE_CPU, 2);
    const struct job *one = submit(2, 2, JOB_GPU), *two = submit(1, 2, JOB_GPU),
                     *three = submit(1, 9, JOB_CPU), *four = submit(1, 1, JOB_ANY);
    schedule();
    ranks_are(one, "a/0 a/1");
    stands(two, "PENDING", "DevicesBusy", "it needs 1 GPU; 0 of 2 are free");
    ranks_are(three, "b/0 b/1");
    stands(four, "PENDING", "DevicesBusy", "it needs 1 device; 0 of 2 are free");
}
END_TEST

START_TEST(a_grant_takes_as_few_workers_as_it_can)
{
    add_worker("a", HARDWARE_CPU, 2);
    add_worker("b", HARDWARE_CPU, 4);
    add_worker("c", HARDWARE_CPU, 3);
    const struct job *one = submit(3, 3, JOB_ANY), *two = submit(5, 5, JOB_ANY);
    schedule();
    ranks_are(one, "c/0 c/1 c/2");
    ranks_are(two, "b/0 b/1 b/2 b/3 a/0");
}
END_TEST

START_TEST(a_grant_comes_from_the_fastest_workers_that_have_enough)
{
    add_worker("a", HARDWARE_CPU, 4);
    add_worker("b", HARDWARE_CPU, 2);
    add_worker("c", HARDWARE_CPU, 2);
    set_speed("a", 1e12);
    set_speed("b", 5e12);
    set_speed("c", 4.6e12); /* about as fast */
    const struct job *one = submit(1, 1, JOB_ANY), *two = submit(3, 3, JOB_ANY),
                     *three = submit(4, 4, JOB_ANY);
    schedule();
    ranks_are(one, "b/0");
    ranks_are(two, "c/0 c/1 b/1");
    ranks_are(three, "a/0 a/1 a/2 a/3");
}
END_TEST

START_TEST(a_slow_worker_is_as_good_as_part_of_a_fast_one)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 4);
    set_speed("a", 5e12);
    set_speed("b", 1e12);
    const struct job *large = submit(4, 4, JOB_ANY), *small = submit(1, 1, JOB_ANY);
    schedule();
    ranks_are(large, "b/0 b/1 b/2 b/3");
    ranks_are(small, "a/0");
}
END_TEST

START_TEST(a_device_that_has_become_slow_counts_as_such)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    set_speed("a", 5e12);
    set_speed("b", 4e12);
    views[0].slowdown = 3;
    const struct job *job = submit(1, 1, JOB_ANY);
    schedule();
    ranks_are(job, "b/0");
}
END_TEST

START_TEST(suspect_and_draining_workers_get_nothing_new)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    views[0].grantable = views[1].grantable = false;
    views[0].draining = true;
    const struct job *one = submit(1, 1, JOB_ANY), *two = submit(2, 2, JOB_ANY);
    schedule();
    stands(one, "PENDING", "DevicesBusy", "it needs 1 device; 0 of 1 are free");
    stands(two, "PENDING", "TooFewDevices",
           "it needs 2 devices of one kind, but the cluster has only 1; 1 node with 1 device is "
           "drained: 'gimbal undrain NODE' gives one back");
    views[1].grantable = true;
    schedule();
    ranks_are(one, "b/0");
}
END_TEST

START_TEST(drained_nodes_are_counted_for_those_who_wait)
{
    add_worker("a", HARDWARE_CPU, 2);
    add_worker("b", HARDWARE_CPU, 1);
    add_worker("c", HARDWARE_GPU, 1);
    for (size_t i = 0; i < view_count; i++) {
        views[i].grantable = false;
        views[i].draining = true;
    }
    const struct job *any = submit(1, 1, JOB_ANY), *gpu = submit(2, 2, JOB_GPU);
    schedule();
    stands(any, "PENDING", "NoDevices",
           "it needs 1 device, and 3 nodes with 4 devices are drained: 'gimbal undrain NODE' gives "
           "one back");
    stands(gpu, "PENDING", "NoDevices",
           "it needs 2 GPUs, and 1 node with 1 device is drained: 'gimbal undrain NODE' gives one "
           "back");
}
END_TEST

START_TEST(one_key_is_one_job)
{
    struct job_submission submission = {
        .key = "k", .name = "gpt", .user = "ada", .text = "x", .devices_min = 1, .devices_max = 1};
    const struct job *one, *two;
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &one, &actions, &err), 0);
    jobs_actions_finish(&actions);
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), 0);
    ck_assert_ptr_eq(one, two);
    actions_are("");
    submission.text = "y";
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), -EEXIST);
    ck_assert_str_eq(err.text, "the key 'k' was used to submit another job file, as j-1");
    submission.text = "x";
    ck_assert(job_is_of(one, &submission));
    submission.given = "{}";
    ck_assert_msg(!job_is_of(one, &submission), "another plan is another wish");
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), -EEXIST);
    submission.user = "bob";
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), 0);
    ck_assert_str_eq(two->id, "j-2");
}
END_TEST

START_TEST(a_wrong_submission_is_refused_in_words)
{
    struct job_submission good = {
        .key = "", .name = "gpt", .user = "ada", .text = "x", .devices_min = 1, .devices_max = 1};
    const struct job *job = NULL;
    struct job_submission wrong = good;
    wrong.devices_min = 2;
    ck_assert_int_eq(jobs_submit(jobs, &wrong, 0, &job, &actions, &err), -EINVAL);
    ck_assert_str_eq(err.text, "devices: {min: 2, max: 1}: it must be 1 <= min <= max");
    wrong = good;
    wrong.name = "my job";
    ck_assert_int_eq(jobs_submit(jobs, &wrong, 0, &job, &actions, &err), -EINVAL);
    wrong = good;
    wrong.user = "";
    ck_assert_int_eq(jobs_submit(jobs, &wrong, 0, &job, &actions, &err), -EINVAL);
    ck_assert_uint_eq(jobs_count(jobs), 0);
    ck_assert_ptr_null(job);
}
END_TEST

START_TEST(a_full_queue_says_so_and_ended_jobs_can_be_forgotten)
{
    jobs_destroy(jobs);
    jobs = jobs_create(&(struct jobs_config){.pending_max = 2}, 5);
    const struct job *job = submit(1, 1, JOB_ANY);
    ck_assert_str_eq(job->id, "j-5");
    submit(1, 1, JOB_ANY);
    struct job_submission submission = {
        .key = "", .name = "gpt", .user = "ada", .text = "x", .devices_min = 1, .devices_max = 1};
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &job, &actions, &err), -EAGAIN);
    ck_assert_str_eq(err.text, "the queue is full: 2 jobs are waiting, try again later");
    must(cancelled(jobs_find(jobs, "j-5")));
    must(cancelled(jobs_find(jobs, "j-6")));
    submit(1, 1, JOB_ANY);
    jobs_forget(jobs, 4);
    jobs_forget(jobs, 5);
    jobs_forget(jobs, 7); /* it has not ended */
    ck_assert_ptr_null(jobs_find(jobs, "j-5"));
    ck_assert_ptr_nonnull(jobs_find(jobs, "j-6"));
    ck_assert_ptr_null(jobs_find(jobs, "j-06"));
    ck_assert_ptr_null(jobs_find(jobs, "7"));
    ck_assert_str_eq(jobs_at(jobs, 1)->id, "j-7");
}
END_TEST

START_TEST(a_job_that_needs_more_memory_waits_for_more_devices)
{
    add_worker("a", HARDWARE_CPU, 2);
    const struct job *job = submit(1, 4, JOB_ANY);
    schedule();
    carry_out();
    jobs_actions_finish(&actions);
    struct job_event event = of(JOB_EVENT_UNFIT, job);
    event.devices_needed = 3;
    event.words = "it fits on 3 devices of 1 GiB";
    must(event);
    must(event); /* repeated */
    stands(job, "PENDING", "InfeasibleMemory", "it fits on 3 devices of 1 GiB");
    actions_are("store j-1, release j-1");
    schedule();
    stands(job, "PENDING", "InfeasibleMemory",
           "its memory needs 3 devices of one kind, but the cluster has only 2");
    actions_are("");
    add_worker("b", HARDWARE_CPU, 1);
    schedule();
    stands(job, "PLANNING", "None", "");
    ck_assert_uint_eq(job->epoch, 2);
    ranks_are(job, "a/0 a/1 b/0");
}
END_TEST

START_TEST(a_job_whose_plan_names_devices_gets_just_these)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 2);
    add_worker("c", HARDWARE_CPU, 1);
    const struct job *job = submit_for("c/0\nb/1\n", 2);
    schedule();
    ck_assert_int_eq(job->state, JOB_PLANNING);
    ranks_are(job, "c/0 b/1");
}
END_TEST

/* Others have what it has no use for, but not what it waits for. */
START_TEST(a_device_that_a_plan_names_is_waited_for)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 2);
    const struct job *first = submit_for("b/0\n", 1);
    schedule();
    const struct job *job = submit_for("b/0\nb/1\n", 2);
    const struct job *small = submit(1, 1, JOB_ANY), *next = submit(1, 1, JOB_ANY);
    const struct job *lost = submit_for("d/0\n", 1);
    schedule();
    stands(job, "PENDING", "DevicesBusy", "its plan is for b/0, which j-1 has");
    ranks_are(small, "a/0");
    stands(next, "PENDING", "DevicesBusy", "it needs 1 device; 0 of 3 are free");
    stands(lost, "PENDING", "NoDevices", "its plan is for d/0, which no worker offers");
    must(cancelled(first));
    schedule();
    ranks_are(job, "b/0 b/1");
    add_worker("d", HARDWARE_CPU, 1);
    views[3].grantable = false;
    views[3].draining = true;
    schedule();
    stands(lost, "PENDING", "DevicesBusy", "its plan is for d/0, which is on a drained node");
    must(cancelled(next));
    views[3].grantable = true;
    views[3].draining = false;
    schedule();
    ranks_are(lost, "d/0");
}
END_TEST

START_TEST(a_job_whose_plan_names_devices_waits_for_its_turn)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    submit_for("b/0\n", 1);
    schedule();
    submit(2, 2, JOB_ANY);
    const struct job *job = submit_for("a/0\n", 1);
    schedule();
    stands(job, "PENDING", "WaitingForOthers", "it is behind j-2");
}
END_TEST

START_TEST(a_new_worker_may_be_a_larger_one)
{
    add_worker("a", HARDWARE_CPU, 1);
    const struct job *job = submit(1, 4, JOB_ANY);
    schedule();
    struct job_event event = of(JOB_EVENT_UNFIT, job);
    event.devices_needed = 4;
    must(event);
    schedule();
    stands(job, "PENDING", "InfeasibleMemory",
           "its memory needs 4 devices of one kind, but the cluster has only 1");
    must((struct job_event){.kind = JOB_EVENT_WORKER_JOINED});
    add_worker("b", HARDWARE_CPU, 1);
    schedule();
    stands(job, "PLANNING", "None", "");
}
END_TEST

SUITE(queue)
{
    TCase *tcase = tcase_create("queue");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_test(tcase, the_queue_is_first_in_first_out);
    tcase_add_test(tcase, a_job_too_large_for_the_cluster_blocks_nobody);
    tcase_add_test(tcase, jobs_of_another_kind_of_device_pass);
    tcase_add_test(tcase, a_grant_takes_as_few_workers_as_it_can);
    tcase_add_test(tcase, a_grant_comes_from_the_fastest_workers_that_have_enough);
    tcase_add_test(tcase, a_slow_worker_is_as_good_as_part_of_a_fast_one);
    tcase_add_test(tcase, a_device_that_has_become_slow_counts_as_such);
    tcase_add_test(tcase, suspect_and_draining_workers_get_nothing_new);
    tcase_add_test(tcase, drained_nodes_are_counted_for_those_who_wait);
    tcase_add_test(tcase, one_key_is_one_job);
    tcase_add_test(tcase, a_wrong_submission_is_refused_in_words);
    tcase_add_test(tcase, a_full_queue_says_so_and_ended_jobs_can_be_forgotten);
    tcase_add_test(tcase, a_job_that_needs_more_memory_waits_for_more_devices);
    tcase_add_test(tcase, a_job_whose_plan_names_devices_gets_just_these);
    tcase_add_test(tcase, a_device_that_a_plan_names_is_waited_for);
    tcase_add_test(tcase, a_job_whose_plan_names_devices_waits_for_its_turn);
    tcase_add_test(tcase, a_new_worker_may_be_a_larger_one);
    return suite_run("queue", tcase, NULL);
}
