/* test_jobs.c - a job's way from submission to its end, and who is granted what. */
#include "coordinator/jobs/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"

#define DEVICES_MAX 16

static struct jobs *jobs;
static struct job_actions actions;
static struct error err;

/* A cluster as the queue sees it: devices of workers a, b, c..., instance 1, all free. */
static struct hardware_device hardware[DEVICES_MAX];
static struct device_view views[DEVICES_MAX];
static char holders[DEVICES_MAX][HOLDER_SIZE];
static size_t view_count;

static void setup(void)
{
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    actions = (struct job_actions){0};
    err.text[0] = '\0';
    view_count = 0;
}

static void teardown(void)
{
    jobs_destroy(jobs);
    jobs_actions_finish(&actions);
}

static void add_worker(const char *name, enum hardware_kind kind, unsigned devices)
{
    for (unsigned i = 0; i < devices; i++) {
        hardware[view_count] = (struct hardware_device){.kind = kind, .index = i};
        struct device_view *view = &views[view_count];
        *view = (struct device_view){
            .host = "host", .device = &hardware[view_count], .grantable = true};
        holders[view_count][0] = '\0';
        view->holder = holders[view_count];
        snprintf(view->ref.worker, sizeof view->ref.worker, "%s", name);
        view->ref.instance = 1;
        view->ref.index = i;
        view_count++;
    }
}

/* What main would do: hold and release on the views. */
static void carry_out(void)
{
    for (size_t i = 0; i < actions.count; i++) {
        const struct job *job = jobs_find(jobs, actions.items[i].job);
        if (actions.items[i].kind != JOB_ACTION_HOLD && actions.items[i].kind != JOB_ACTION_RELEASE)
            continue;
        struct device_ref refs[DEVICES_MAX];
        size_t count = job_devices(job, refs);
        for (size_t k = 0; k < view_count; k++) {
            if (strcmp(views[k].holder, job->id) == 0)
                holders[k][0] = '\0';
            for (size_t r = 0; r < count; r++)
                if (strcmp(refs[r].worker, views[k].ref.worker) == 0 &&
                    refs[r].index == views[k].ref.index)
                    memcpy(holders[k], job->id, sizeof holders[k]);
        }
    }
}

/* The actions since the last call, as "store j-1, hold j-1"; carries them out. */
static void actions_are(const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < actions.count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s", i ? ", " : "",
                 jobs_action_name(actions.items[i].kind), actions.items[i].job);
    }
    carry_out();
    jobs_actions_clear(&actions);
    ck_assert_str_eq(text, expected);
}

static const struct job *submit(unsigned min, unsigned max, enum job_kind kind)
{
    const struct job *job = NULL;
    struct job_submission submission = {.key = "",
                                        .name = "gpt",
                                        .user = "ada",
                                        .text = "name: gpt",
                                        .devices_min = min,
                                        .devices_max = max,
                                        .kind = kind,
                                        .steps = 100};
    ck_assert_msg(jobs_submit(jobs, &submission, 1000, &job, &actions, &err) == 0, "%s", err.text);
    return job;
}

static void schedule(void)
{
    carry_out();
    jobs_actions_clear(&actions);
    jobs_schedule(jobs, views, view_count, 2000, &actions);
}

static int apply(struct job_event event)
{
    return jobs_apply(jobs, &event, 3000, &actions, &err);
}

static void must(struct job_event event)
{
    ck_assert_msg(apply(event) == 0, "%s", err.text);
}

static void stands(const struct job *job, const char *state, const char *reason, const char *words)
{
    ck_assert_str_eq(job_state_name(job->state), state);
    ck_assert_str_eq(job_reason_name(job->reason), reason);
    ck_assert_str_eq(job->words, words);
}

static void ranks_are(const struct job *job, const char *expected)
{
    char text[256] = "";
    for (size_t i = 0; i < job->rank_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s/%u", i ? " " : "",
                 job->ranks[i].device.worker, job->ranks[i].device.index);
    }
    ck_assert_str_eq(text, expected);
}

static struct job_event of(enum job_event_kind kind, const struct job *job)
{
    return (struct job_event){.kind = kind, .job = job->id, .epoch = job->epoch};
}

static struct job_event planned(const struct job *job, const struct device_ref *refs, size_t count)
{
    struct job_event event = of(JOB_EVENT_PLANNED, job);
    event.plan.id = "p-1";
    event.plan.devices = refs;
    event.plan.device_count = count;
    return event;
}

static struct job_event ready(const struct job *job, unsigned rank)
{
    struct job_event event = of(JOB_EVENT_READY, job);
    event.rank = rank;
    return event;
}

static struct job_event exited(const struct job *job, unsigned rank, int status, const char *words)
{
    struct job_event event = of(JOB_EVENT_EXITED, job);
    event.rank = rank;
    event.status = status;
    event.words = words;
    return event;
}

static struct job_event cancelled(const struct job *job)
{
    struct job_event event = of(JOB_EVENT_CANCEL, job);
    event.words = "ada";
    return event;
}

static struct job_event lost(const char *worker)
{
    struct job_event event = {.kind = JOB_EVENT_WORKER_LOST, .words = "silent for 5.00 s"};
    event.worker.name = worker;
    event.worker.instance = 1;
    return event;
}

/* A job on workers a and b, a device each, brought to the state; actions so far are done. */
static const struct job *job_in(enum job_state state)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    const struct job *job = submit(2, 2, JOB_ANY);
    if (state >= JOB_PLANNING)
        schedule();
    struct device_ref refs[] = {views[0].ref, views[1].ref};
    if (state >= JOB_STARTING)
        must(planned(job, refs, 2));
    if (state >= JOB_RUNNING) {
        must(ready(job, 0));
        must(ready(job, 1));
    }
    ck_assert_int_eq(job->state, state);
    carry_out();
    jobs_actions_clear(&actions);
    return job;
}

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
    stands(second, "PENDING", "DevicesBusy", "it needs 1 device, 0 of 3 are free");
    carry_out();
    jobs_actions_clear(&actions);
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

START_TEST(a_job_that_needs_more_memory_waits_for_more_devices)
{
    add_worker("a", HARDWARE_CPU, 2);
    const struct job *job = submit(1, 4, JOB_ANY);
    schedule();
    carry_out();
    jobs_actions_clear(&actions);
    struct job_event event = of(JOB_EVENT_UNFIT, job);
    event.devices_needed = 3;
    event.words = "it fits on 3 devices of 1 GiB";
    must(event);
    must(event); /* repeated */
    stands(job, "PENDING", "InfeasibleMemory", "it fits on 3 devices of 1 GiB");
    actions_are("store j-1, release j-1");
    schedule();
    stands(job, "PENDING", "InfeasibleMemory",
           "its memory needs 3 devices of one kind, the cluster has 2");
    actions_are("");
    add_worker("b", HARDWARE_CPU, 1);
    schedule();
    stands(job, "PLANNING", "None", "");
    ck_assert_uint_eq(job->epoch, 2);
    ranks_are(job, "a/0 a/1 b/0");
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
           "its memory needs 4 devices of one kind, the cluster has 1");
    must((struct job_event){.kind = JOB_EVENT_WORKER_JOINED});
    add_worker("b", HARDWARE_CPU, 1);
    schedule();
    stands(job, "PLANNING", "None", "");
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
    stands(job, "FAILED", "PlanRefused", "25 heads do not divide by 2");
    actions_are("store j-1, release j-1");
}
END_TEST

START_TEST(an_executor_that_fails_takes_the_job_down_in_order)
{
    const struct job *job = job_in(JOB_RUNNING);
    must(exited(job, 1, 139, "segmentation fault\n"));
    stands(job, "FAILING", "RankFailed",
           "rank 1 on b/0 exited with status 139: segmentation fault?");
    actions_are("store j-1, stop j-1");
    must(exited(job, 0, 143, "stopped"));
    stands(job, "FAILED", "RankFailed",
           "rank 1 on b/0 exited with status 139: segmentation fault?");
    actions_are("store j-1, release j-1");
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
    jobs_actions_clear(&actions);
    ck_assert_int_eq(apply(cancelled(job)), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is DONE: it is too late for 'cancel'");
    must(exited(job, 1, 1, ""));
    must(lost("a"));
    stands(job, "DONE", "None", "");
    actions_are("");
}
END_TEST

START_TEST(a_message_of_another_epoch_is_refused_and_counted)
{
    const struct job *job = job_in(JOB_RUNNING);
    struct job_event event = exited(job, 0, 1, "");
    event.epoch = 7;
    ck_assert_int_eq(apply(event), -ESTALE);
    ck_assert_str_eq(err.text, "j-1 is in epoch 1: 'exited' of epoch 7 is refused");
    ck_assert_uint_eq(jobs_stale_count(jobs), 1);
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

START_TEST(the_queue_is_first_in_first_out)
{
    add_worker("a", HARDWARE_CPU, 4);
    const struct job *first = submit(3, 3, JOB_ANY), *second = submit(2, 2, JOB_ANY),
                     *third = submit(1, 1, JOB_ANY);
    schedule();
    stands(first, "PLANNING", "None", "");
    stands(second, "PENDING", "DevicesBusy", "it needs 2 devices of one kind, 1 of 4 are free");
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
    stands(large, "PENDING", "TooFewDevices", "it needs 3 devices of one kind, the cluster has 2");
    stands(gpus, "PENDING", "NoDevices", "it needs 1 GPU, no worker offers any");
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
    stands(two, "PENDING", "DevicesBusy", "it needs 1 GPU, 0 of 2 are free");
    ranks_are(three, "b/0 b/1");
    stands(four, "PENDING", "DevicesBusy", "it needs 1 device, 0 of 2 are free");
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

START_TEST(suspect_and_draining_workers_get_nothing_new)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    views[0].grantable = views[1].grantable = false;
    views[0].draining = true;
    const struct job *one = submit(1, 1, JOB_ANY), *two = submit(2, 2, JOB_ANY);
    schedule();
    stands(one, "PENDING", "DevicesBusy", "it needs 1 device, 0 of 1 are free");
    stands(two, "PENDING", "TooFewDevices", "it needs 2 devices of one kind, the cluster has 1");
    views[1].grantable = true;
    schedule();
    ranks_are(one, "b/0");
}
END_TEST

START_TEST(one_key_is_one_job)
{
    struct job_submission submission = {
        .key = "k", .name = "gpt", .user = "ada", .text = "x", .devices_min = 1, .devices_max = 1};
    const struct job *one, *two;
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &one, &actions, &err), 0);
    jobs_actions_clear(&actions);
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), 0);
    ck_assert_ptr_eq(one, two);
    actions_are("");
    submission.text = "y";
    ck_assert_int_eq(jobs_submit(jobs, &submission, 0, &two, &actions, &err), -EEXIST);
    ck_assert_str_eq(err.text, "the key 'k' was used to submit another job file, as j-1");
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

START_TEST(a_full_queue_says_so_and_ended_jobs_are_forgotten)
{
    jobs_destroy(jobs);
    jobs = jobs_create(&(struct jobs_config){.pending_max = 2, .ended_max = 1}, 5);
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
    ck_assert_ptr_null(jobs_find(jobs, "j-5"));
    ck_assert_ptr_nonnull(jobs_find(jobs, "j-6"));
    ck_assert_ptr_null(jobs_find(jobs, "j-06"));
    ck_assert_ptr_null(jobs_find(jobs, "7"));
    ck_assert_str_eq(jobs_at(jobs, 1)->id, "j-7");
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

int main(void)
{
    TCase *tcase = tcase_create("jobs");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_job_goes_from_the_queue_to_its_end);
    tcase_add_test(tcase, devices_that_the_plan_leaves_are_given_back);
    tcase_add_test(tcase, a_plan_over_other_devices_is_refused);
    tcase_add_test(tcase, a_job_that_needs_more_memory_waits_for_more_devices);
    tcase_add_test(tcase, a_new_worker_may_be_a_larger_one);
    tcase_add_test(tcase, a_job_that_never_fits_fails_with_the_reason);
    tcase_add_test(tcase, an_executor_that_fails_takes_the_job_down_in_order);
    tcase_add_test(tcase, an_executor_that_ends_before_it_is_ready_failed);
    tcase_add_test(tcase, a_lost_worker_fails_the_job_when_the_others_have_stopped);
    tcase_add_test(tcase, a_worker_lost_while_planning_puts_the_job_back);
    tcase_add_test(tcase, a_worker_lost_after_its_ranks_ended_well_does_no_harm);
    tcase_add_loop_test(tcase, a_cancelled_job_keeps_its_devices_until_its_executors_are_gone, 0,
                        sizeof cancels / sizeof *cancels);
    tcase_add_test(tcase, what_ended_stays_ended);
    tcase_add_test(tcase, a_message_of_another_epoch_is_refused_and_counted);
    tcase_add_test(tcase, a_repeated_message_is_harmless);
    tcase_add_test(tcase, the_queue_is_first_in_first_out);
    tcase_add_test(tcase, a_job_too_large_for_the_cluster_blocks_nobody);
    tcase_add_test(tcase, jobs_of_another_kind_of_device_pass);
    tcase_add_test(tcase, a_grant_takes_as_few_workers_as_it_can);
    tcase_add_test(tcase, suspect_and_draining_workers_get_nothing_new);
    tcase_add_test(tcase, one_key_is_one_job);
    tcase_add_test(tcase, a_wrong_submission_is_refused_in_words);
    tcase_add_test(tcase, a_full_queue_says_so_and_ended_jobs_are_forgotten);
    tcase_add_loop_test(tcase, a_restored_job_goes_on_where_it_was, 0,
                        sizeof resumed / sizeof *resumed);
    return suite_run("jobs", tcase, NULL);
}
