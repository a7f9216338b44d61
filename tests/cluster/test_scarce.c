/* test_scarce.c - what a coordinator makes of a rank that ran out of memory: the next plan has less
 * of its device. The workers are clients of the test. */
#include "tests/cluster/small_job.h"

#include "common/message/message.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static struct cluster cluster;
static struct party *user, *worker;

static void set_up_empty(void)
{
    cluster_start(&cluster, patient);
    user = cluster_user(&cluster);
}

static void set_up(void)
{
    set_up_empty();
    worker = cluster_worker(&cluster, "node-a", 1, GIB);
}

static void tear_down(void)
{
    cluster_stop(&cluster);
}

/* What the plan takes of the only device, in bytes. */
static double planned(const Gimbal__Assignment *assignment)
{
    json_error_t error;
    json_int_t bytes = 0;
    json_t *plan = json_loads(assignment->plan->json, 0, &error);
    ck_assert_msg(
        json_unpack_ex(plan, &error, 0, "{s:{s:I}}", "predicted", "memory_bytes_max", &bytes) == 0,
        "%s", error.text);
    json_decref(plan);
    return (double)bytes;
}

static void run_out(const Gimbal__Assignment *assignment)
{
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY,
                 "cannot reserve memory: state 9 GB");
}

/* Is there another plan for the job, or has it failed? */
static bool goes_on(void)
{
    for (;;) {
        const Gimbal__Event *event = cluster_event(&cluster, user, NULL);
        if (strcmp(event->kind, "job-starting") == 0)
            return true;
        if (strcmp(event->kind, "job-failed") == 0)
            return false;
    }
}

/* Where nothing smaller is left it is said which device it is about. */
START_TEST(a_rank_that_ran_out_of_memory_is_planned_with_less_until_no_plan_fits)
{
    message_free(&submit(user, small, "elastic: {max_restarts: 100}\ndevices: {max: 1}\n")->base);
    double before = 2 * (double)GIB;
    unsigned plans = 0;
    for (; goes_on(); plans++) {
        const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
        ck_assert_uint_eq(assignment->epoch, plans + 1);
        ck_assert_msg(planned(assignment) <= 0.9 * before, "plan %u: %.0f bytes after %.0f", plans,
                      planned(assignment), before);
        before = planned(assignment);
        run_out(assignment);
    }
    printf("%u plans, each smaller than the one before\n", plans);
    ck_assert_uint_ge(plans, 2);
    assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__FAILED, "no plan fits: ");
    assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__FAILED, " on node-a/0, where ");
    assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__FAILED,
               " may be used (a rank of the job ran out of memory there); it would run with "
               "devices of at least ");
}
END_TEST

START_TEST(the_words_say_how_much_is_planned)
{
    char words[160];
    message_free(&submit(user, small, "elastic: {max_restarts: 10}\n")->base);
    cluster_event(&cluster, user, "job-pending"); /* submitted */
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    run_out(assignment);
    const Gimbal__Event *event = cluster_event(&cluster, user, "job-pending");
    snprintf(words, sizeof words,
             "replan 1 of 10: rank 0 on node-a/0 ran out of memory before it was ready, and is "
             "planned with at most ");
    ck_assert_msg(strstr(event->text, words) != NULL, "%s", event->text);
    ck_assert_msg(strstr(event->text, " there: cannot reserve memory: state 9 GB") != NULL, "%s",
                  event->text);
}
END_TEST

/* A worker says how its rank ended until it hears an answer, and once more when all are to leave.
 */
START_TEST(what_is_said_again_counts_once)
{
    struct party *other = cluster_worker(&cluster, "node-b", 1, GIB);
    message_free(&submit(user, small, "devices: {min: 2, max: 2}\n")->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    const Gimbal__Assignment *others = await_assignment(&cluster, other);
    ck_assert(goes_on());
    for (int i = 0; i < 50; i++)
        run_out(assignment);
    tell_stopped(other, others, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "");
    ck_assert(goes_on());
}
END_TEST

/* Another job, and another life of the worker, begin with all that it says it has. */
START_TEST(what_was_learned_is_of_the_job_and_of_the_worker_s_life)
{
    message_free(&submit(user, small, "")->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    double first = planned(assignment);
    run_out(assignment);
    assignment = await_assignment(&cluster, worker);
    ck_assert(planned(assignment) <= 0.9 * first);
    party_leave(&cluster, worker);
    cluster_event(&cluster, user, "node-lost"); /* until then, another of its name is refused */
    worker = cluster_worker(&cluster, "node-a", 1, GIB);
    assignment = await_assignment(&cluster, worker);
    ck_assert(planned(assignment) == first);
    run_out(assignment);
    assignment = await_assignment(&cluster, worker);
    ck_assert(planned(assignment) <= 0.9 * first);
    tell_ready(worker, assignment);
    cluster_record(&cluster, worker, GIMBAL__WORKER_RECORD__RECORD_GO);
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "");
    cluster_record(&cluster, worker, GIMBAL__WORKER_RECORD__RECORD_DROP);
    message_free(&submit(user, small, "")->base);
    ck_assert(planned(await_assignment(&cluster, worker)) == first);
}
END_TEST

/* A fault of another kind is no reason to plan anew. */
START_TEST(a_fault_leaves_the_plan_as_it_is)
{
    message_free(&submit(user, small, "")->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    double first = planned(assignment);
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, "a bug");
    ck_assert(planned(await_assignment(&cluster, worker)) == first);
}
END_TEST

/* Only a device that has none of its own is out of memory when its host is. */
START_TEST(what_the_host_lacks_says_nothing_of_a_device_with_its_own)
{
    const struct hardware_device device = {.kind = HARDWARE_GPU,
                                           .name = "H200",
                                           .cpuset = "0-3",
                                           .cores = 4,
                                           .memory_bytes = 100 * GIB,
                                           .flops = 1e15,
                                           .bandwidth = 4e12};
    worker = _i ? cluster_worker_of(&cluster, "node-a", &device, 1)
                : cluster_worker(&cluster, "node-a", 1, GIB);
    message_free(&submit(user, small, "devices: {max: 1}\n")->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    double first = planned(assignment);
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY,
                 "no 9 GB of host memory for the copy of a checkpoint");
    double second = planned(await_assignment(&cluster, worker));
    ck_assert_msg(_i ? second == first : second < first, "%.0f after %.0f", second, first);
    assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__STARTING, "");
}
END_TEST

SUITE(scarce)
{
    TCase *tcase = tcase_create("scarce"), *host = tcase_create("host");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_checked_fixture(host, set_up_empty, tear_down);
    tcase_add_test(tcase, a_rank_that_ran_out_of_memory_is_planned_with_less_until_no_plan_fits);
    tcase_add_test(tcase, what_is_said_again_counts_once);
    tcase_add_test(tcase, the_words_say_how_much_is_planned);
    tcase_add_test(tcase, what_was_learned_is_of_the_job_and_of_the_worker_s_life);
    tcase_add_loop_test(host, what_the_host_lacks_says_nothing_of_a_device_with_its_own, 0, 2);
    tcase_add_test(tcase, a_fault_leaves_the_plan_as_it_is);
    return suite_run("scarce", tcase, host, NULL);
}
