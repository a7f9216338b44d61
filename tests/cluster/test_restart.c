/* test_restart.c - the coordinator and its disk: what it says when that fails, and what the next
 * one knows. */
#include "common/message/message.h"
#include "tests/cluster/small_job.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>

static struct cluster cluster;

static void begin(void)
{
    cluster_start(&cluster, NULL);
}

static void end(void)
{
    cluster_stop(&cluster);
}

static size_t count_jobs(struct party *user)
{
    Gimbal__ListJobsRequest request = GIMBAL__LIST_JOBS_REQUEST__INIT;
    request.all = true;
    Gimbal__ListJobsReply *reply = party_call(user, COORDINATOR_LIST_JOBS, &request);
    size_t count = reply->n_jobs;
    message_free(&reply->base);
    return count;
}

/* No file of the coordinator may grow any more, as on a full disk. */
static void fill_disk(void)
{
    const struct rlimit none = {1, 1};
    ck_assert_int_eq(prlimit(cluster.coordinator, RLIMIT_FSIZE, &none, NULL), 0);
}

START_TEST(a_job_that_cannot_be_stored_is_not_accepted_and_the_coordinator_leaves_with_74)
{
    enum rpc_status status;
    struct error words;
    int end_status;
    struct party *user = cluster_user(&cluster);
    message_free(&submit(user, small, "")->base);
    fill_disk();
    ck_assert_ptr_null(ask_submit(user, small, "", &status, &words));
    ck_assert_int_eq(status, RPC_UNAVAILABLE);
    ck_assert_msg(strstr(words.text, "the store has failed, and nothing more is accepted"), "%s",
                  words.text);
    ck_assert_int_eq(waitpid(cluster.coordinator, &end_status, 0), cluster.coordinator);
    ck_assert(WIFEXITED(end_status));
    ck_assert_int_eq(WEXITSTATUS(end_status), EX_IOERR);

    cluster_restart(&cluster, NULL);
    user = cluster_user(&cluster);
    ck_assert_uint_eq(count_jobs(user), 1);
    message_free(&submit(user, small, "")->base);
    ck_assert_uint_eq(count_jobs(user), 2);
}
END_TEST

START_TEST(a_second_coordinator_on_the_same_store_is_refused)
{
    char state[80], words[2048];
    snprintf(state, sizeof state, "%s/state", cluster.directory);
    int code = coordinator_run((const char *const[]){"--state", state, NULL}, words, sizeof words);
    ck_assert_int_eq(code, EX_IOERR);
    ck_assert_msg(strstr(words, "/state/store.db: another process has it open"), "%s", words);
}
END_TEST

START_TEST(numbers_of_jobs_and_events_go_on)
{
    struct party *user = cluster_user(&cluster);
    Gimbal__SubmitReply *reply = submit(user, small, "");
    ck_assert_str_eq(reply->job, "j-1");
    message_free(&reply->base);
    cluster_kill(&cluster);
    cluster_restart(&cluster, NULL);
    user = cluster_user(&cluster);
    assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__PENDING, "no worker offers any");
    reply = submit(user, small, "");
    ck_assert_str_eq(reply->job, "j-2");
    message_free(&reply->base);

    Gimbal__ListEventsRequest request = GIMBAL__LIST_EVENTS_REQUEST__INIT;
    request.count_max = 2;
    uint64_t revision = 0;
    for (bool more = true; more;) {
        request.after = revision;
        Gimbal__ListEventsReply *page = party_call(user, COORDINATOR_LIST_EVENTS, &request);
        for (size_t i = 0; i < page->n_records; i++)
            ck_assert_uint_eq(page->records[i]->revision, ++revision);
        more = page->more;
        ck_assert(more || revision == page->revision);
        message_free(&page->base);
    }
    ck_assert_uint_ge(revision, 4); /* pending, and why, twice */
}
END_TEST

/* As if another release had written it. */
static void spoil_plans(void)
{
    char path[96];
    sqlite3 *store;
    snprintf(path, sizeof path, "%s/state/store.db", cluster.directory);
    ck_assert_int_eq(sqlite3_open(path, &store), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(store, "UPDATE plans SET json = '{\"version\": 0}'", NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_changes(store), 1);
    sqlite3_close(store);
}

static void cancel(struct party *user, struct party *worker, const Gimbal__Assignment *assignment)
{
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    request.job = assignment->job;
    party_tell(user, COORDINATOR_CANCEL, &request);
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "");
}

/* One that goes by it is planned again; of one that has ended nobody needs it. */
START_TEST(a_plan_that_is_not_understood_any_more_keeps_no_coordinator_from_starting)
{
    struct party *user = cluster_user(&cluster);
    struct party *worker = cluster_worker(&cluster, "node-a", 1, GIB);
    message_free(&submit(user, small, "")->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    if (_i)
        cancel(user, worker, assignment);
    cluster_kill(&cluster);
    spoil_plans();
    cluster_restart(&cluster, NULL);
    user = cluster_user(&cluster);
    if (_i)
        assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__CANCELLED, "");
    else
        assert_job(user, "j-1", GIMBAL__JOB_STATUS__STATE__PENDING,
                   "the restarted coordinator does not understand its plan");
}
END_TEST

SUITE(restart)
{
    TCase *tcase = tcase_create("restart");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase,
                   a_job_that_cannot_be_stored_is_not_accepted_and_the_coordinator_leaves_with_74);
    tcase_add_test(tcase, a_second_coordinator_on_the_same_store_is_refused);
    tcase_add_test(tcase, numbers_of_jobs_and_events_go_on);
    tcase_add_loop_test(
        tcase, a_plan_that_is_not_understood_any_more_keeps_no_coordinator_from_starting, 0, 2);
    return suite_run("restart", tcase, NULL);
}
