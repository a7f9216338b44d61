/* test_staged.c - what a coordinator makes of a rank's word that a checkpoint is on the disk; the
 * ranks are clients of the test, and there is no disk. */
#include "tests/cluster/small_job.h"

#include "common/message/message.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cluster cluster;
static struct party *user, *worker;

static void set_up(void)
{
    cluster_start(&cluster, patient);
    user = cluster_user(&cluster);
    worker = cluster_worker(&cluster, "node-a", 1, GIB);
}

static void tear_down(void)
{
    cluster_stop(&cluster);
}

static const Gimbal__Assignment *run_job(const char *more)
{
    message_free(&submit(user, small, more)->base);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    tell_ready(worker, assignment);
    cluster_record(&cluster, worker, GIMBAL__WORKER_RECORD__RECORD_GO);
    return assignment;
}

static Gimbal__StagedRequest staged_request(const Gimbal__Assignment *assignment, uint64_t step)
{
    Gimbal__StagedRequest request = GIMBAL__STAGED_REQUEST__INIT;
    request.job = assignment->job;
    request.epoch = assignment->epoch;
    request.rank = assignment->rank;
    request.step = step;
    request.bytes = 1000 * step;
    request.shards = 1;
    return request;
}

/* Tell, and find these listed: names with blanks between, the newest first. */
static void listed_after(const Gimbal__StagedRequest *request, const char *wanted)
{
    char names[256] = "";
    Gimbal__StagedReply *reply = party_call(worker, COORDINATOR_STAGED, request);
    for (size_t i = 0; i < reply->n_listed; i++)
        sprintf(names + strlen(names), "%s%s", i ? " " : "", reply->listed[i]);
    ck_assert_str_eq(names, wanted);
    message_free(&reply->base);
}

static void refused(const Gimbal__StagedRequest *request, enum rpc_status wanted, const char *why)
{
    enum rpc_status status;
    struct error words;
    void *reply = party_ask(worker, COORDINATOR_STAGED, request, &status, &words);
    ck_assert_ptr_null(reply);
    ck_assert_int_eq(status, wanted);
    ck_assert_msg(strstr(words.text, why) != NULL, "%s", words.text);
}

START_TEST(what_is_staged_is_listed_and_the_oldest_are_not_any_more)
{
    const Gimbal__Assignment *assignment =
        run_job("checkpoint: {dir: /proc/nowhere, every: 1, keep: 2}\n");
    ck_assert_msg(strncmp(assignment->checkpoint_folder, "/proc/nowhere/j-1-", 18) == 0, "%s",
                  assignment->checkpoint_folder);
    ck_assert_str_eq(assignment->checkpoint, "");
    Gimbal__StagedRequest first = staged_request(assignment, 1),
                          second = staged_request(assignment, 2),
                          third = staged_request(assignment, 3);
    listed_after(&first, "step-1.epoch-1");
    const Gimbal__Event *event = cluster_event(&cluster, user, "checkpoint");
    ck_assert_msg(strstr(event->text, "j-1 checkpoint of step 1, ") != NULL, "%s", event->text);
    listed_after(&second, "step-2.epoch-1 step-1.epoch-1");
    listed_after(&second, "step-2.epoch-1 step-1.epoch-1"); /* told again: the answer was lost */
    listed_after(&third, "step-3.epoch-1 step-2.epoch-1");
    Gimbal__GetJobReply *job = get_job(user, "j-1");
    ck_assert_uint_eq(job->status->checkpoint_step, 3);
    ck_assert_uint_eq(job->n_checkpoints, 2);
    ck_assert_uint_eq(job->checkpoints[1]->step, 2);
    ck_assert_uint_eq(job->checkpoints[1]->bytes, 2000);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/step-3.epoch-1", assignment->checkpoint_folder);
    ck_assert_str_eq(job->status->checkpoint, folder);
    message_free(&job->base);
}
END_TEST

static void push_step(const Gimbal__Assignment *assignment, uint64_t number, double loss)
{
    Gimbal__StepRecord step = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    Gimbal__PushBatch batch = GIMBAL__PUSH_BATCH__INIT;
    ProtobufCBinaryData bytes;
    step.job = assignment->job;
    step.epoch = assignment->epoch;
    step.step = number;
    step.loss = loss;
    step.seconds = 0.25;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    record.step = &step;
    bytes.data = message_pack(&record.base, &bytes.len);
    batch.stream = (char *)"telemetry";
    batch.first_sequence = number;
    batch.records = &bytes;
    batch.n_records = 1;
    party_tell(worker, COORDINATOR_PUSH_TELEMETRY, &batch);
    free(bytes.data);
}

/* Telemetry comes when it comes: a step is told with its own loss, and not with one before. */
START_TEST(a_checkpoint_that_is_heard_of_before_its_step_tells_no_loss)
{
    const Gimbal__Assignment *assignment = run_job("checkpoint: {dir: /proc/nowhere, every: 1}\n");
    push_step(assignment, 1, 5);
    Gimbal__StagedRequest last = staged_request(assignment, 3);
    listed_after(&last, "step-3.epoch-1");
    push_step(assignment, 2, 4);
    push_step(assignment, 3, 3);
    cluster_event(&cluster, user, "step");
    const Gimbal__Event *event = cluster_event(&cluster, user, "step");
    ck_assert_msg(strstr(event->text, "step 3/3 loss 3.000") != NULL, "%s", event->text);
}
END_TEST

START_TEST(what_could_not_be_written_is_an_event_and_lists_nothing)
{
    const Gimbal__Assignment *assignment = run_job("checkpoint: {dir: /proc/nowhere, every: 1}\n");
    Gimbal__StagedRequest request = staged_request(assignment, 1);
    request.failure = (char *)"rank 0: the disk is full";
    listed_after(&request, "");
    const Gimbal__Event *event = cluster_event(&cluster, user, "checkpoint-failed");
    ck_assert_str_eq(event->text, "j-1 has no checkpoint of step 1: rank 0: the disk is full; "
                                  "training continues");
    Gimbal__StagedRequest next = staged_request(assignment, 2);
    listed_after(&next, "step-2.epoch-1");
}
END_TEST

START_TEST(who_has_no_right_to_it_lists_nothing)
{
    const Gimbal__Assignment *assignment = run_job("checkpoint: {dir: /proc/nowhere, every: 1}\n");
    Gimbal__StagedRequest request = staged_request(assignment, 1);
    request.epoch = 2;
    refused(&request, RPC_FAILED_PRECONDITION, "j-1 is in epoch 1: a message of epoch 2");
    request = staged_request(assignment, 1);
    request.rank = 1;
    refused(&request, RPC_FAILED_PRECONDITION, "j-1 has no such rank");
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "");
    request = staged_request(assignment, 1);
    refused(&request, RPC_FAILED_PRECONDITION, "j-1 is DONE: a checkpoint of epoch 1");
    Gimbal__GetJobReply *job = get_job(user, "j-1");
    ck_assert_uint_eq(job->n_checkpoints, 0);
    message_free(&job->base);
}
END_TEST

START_TEST(a_job_that_wants_none_gets_none)
{
    const Gimbal__Assignment *assignment = run_job("");
    ck_assert_str_eq(assignment->checkpoint_folder, "");
    Gimbal__StagedRequest request = staged_request(assignment, 1);
    refused(&request, RPC_INVALID_ARGUMENT, "j-1 has no checkpoint.dir");
}
END_TEST

START_TEST(the_next_epoch_begins_where_the_newest_one_ends)
{
    const Gimbal__Assignment *assignment = run_job("checkpoint: {dir: /proc/nowhere, every: 1}\n"
                                                   "elastic: {replan: false}\n");
    Gimbal__StagedRequest request = staged_request(assignment, 2);
    char folder[128];
    listed_after(&request, "step-2.epoch-1");
    snprintf(folder, sizeof folder, "%s/step-2.epoch-1", assignment->checkpoint_folder);
    tell_stopped(worker, assignment, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, "no memory");
    const Gimbal__Event *event;
    do
        event = cluster_event(&cluster, user, "job-pending");
    while (!strstr(event->text, "restart"));
    ck_assert_msg(strstr(event->text, "restart 1 of 20, from the checkpoint of step 2: ") != NULL,
                  "%s", event->text);
    assignment = await_assignment(&cluster, worker);
    ck_assert_uint_eq(assignment->epoch, 2);
    ck_assert_uint_eq(assignment->start_step, 2);
    ck_assert_str_eq(assignment->checkpoint, folder);
}
END_TEST

SUITE(staged)
{
    TCase *tcase = tcase_create("staged");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase, what_is_staged_is_listed_and_the_oldest_are_not_any_more);
    tcase_add_test(tcase, a_checkpoint_that_is_heard_of_before_its_step_tells_no_loss);
    tcase_add_test(tcase, what_could_not_be_written_is_an_event_and_lists_nothing);
    tcase_add_test(tcase, who_has_no_right_to_it_lists_nothing);
    tcase_add_test(tcase, a_job_that_wants_none_gets_none);
    tcase_add_test(tcase, the_next_epoch_begins_where_the_newest_one_ends);
    return suite_run("staged", tcase, NULL);
}
