/* test_retention.c - thousands of jobs come and go: their coordinator and its store stay as large
 * as they are, and it answers for every name. */
#include "common/message/message.h"
#include "tests/cluster/small_job.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define JOBS 3000
#define KEPT 500

static struct cluster cluster;
static struct party *user;

/* A job that no device is there for, cancelled at once. */
static void submit_and_cancel(int number)
{
    Gimbal__CancelRequest cancel = GIMBAL__CANCEL_REQUEST__INIT;
    Gimbal__SubmitReply *reply = submit(user, small, "");
    char job[32];
    snprintf(job, sizeof job, "j-%d", number);
    ck_assert_str_eq(reply->job, job);
    message_free(&reply->base);
    cancel.job = job;
    party_tell(user, COORDINATOR_CANCEL, &cancel);
}

/* Resident memory of the coordinator in KiB. */
static long resident_kib(void)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)cluster.coordinator);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    fclose(file);
    ck_assert_int_gt(kib, 0);
    return kib;
}

static long store_kib(void)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof path, "%s/state/store.db", cluster.directory);
    ck_assert_msg(stat(path, &status) == 0, "%s", path);
    return (long)status.st_size / 1024;
}

static void is_answered(int number)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    char job[32], wanted[64];
    struct error words = {""};
    enum rpc_status status;
    snprintf(job, sizeof job, "j-%d", number);
    snprintf(wanted, sizeof wanted, "j-%d ended ", number);
    request.job = job;
    Gimbal__GetJobReply *reply = party_ask(user, COORDINATOR_GET_JOB, &request, &status, &words);
    if (number > JOBS - KEPT) {
        ck_assert_msg(reply != NULL, "%s", words.text);
        message_free(&reply->base);
        return;
    }
    ck_assert_ptr_null(reply);
    ck_assert_int_eq(status, RPC_NOT_FOUND);
    ck_assert_msg(strstr(words.text, wanted) && strstr(words.text, "ago and was removed"), "%s",
                  words.text);
}

START_TEST(three_thousand_jobs_leave_five_hundred_and_their_names)
{
    const char *const arguments[] = {"--retention-jobs", "500", NULL};
    long store = 0, resident = 0;
    cluster_start(&cluster, arguments);
    user = cluster_user(&cluster);
    rpc_watch_stop(user->watch); /* these events are too many for it */
    user->watch = NULL;
    for (int number = 1; number <= JOBS; number++) {
        submit_and_cancel(number);
        if (number % KEPT != 0)
            continue;
        printf("# %d jobs: store %ld KiB, coordinator %ld KiB\n", number, store_kib(),
               resident_kib());
        if (number == 2 * KEPT) {
            store = store_kib();
            resident = resident_kib();
        }
    }
    /* The events of nodes and steps are bounded otherwise; 10000 of all are in memory. */
    ck_assert_msg(store_kib() < store + store / 4, "%ld KiB became %ld", store, store_kib());
    ck_assert_msg(resident_kib() < resident + resident / 4, "%ld KiB became %ld", resident,
                  resident_kib());
    for (int number = 1; number <= JOBS; number++)
        is_answered(number);
    cluster_stop(&cluster);
}
END_TEST

SUITE(retention)
{
    TCase *tcase = tcase_create("retention");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, three_thousand_jobs_leave_five_hundred_and_their_names);
    return suite_run("retention", tcase, NULL);
}
