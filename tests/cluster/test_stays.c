/* test_stays.c - a real coordinator, and a job whose executors stay when a worker is lost. */
#include "common/message/message.h"
#include "tests/cluster/small_job.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cluster cluster;
static struct party *user, *workers[2];
static const Gimbal__Assignment *assignments[2];
static char job[32];

static void setup(void)
{
    cluster_start(&cluster, patient);
    user = cluster_user(&cluster);
}

static void teardown(void)
{
    cluster_stop(&cluster);
}

/* A step that a worker's rank has finished; its number is that of the record as well. */
static void push_step_of(int worker, uint64_t number, bool skipped)
{
    Gimbal__StepRecord step = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    Gimbal__PushBatch batch = GIMBAL__PUSH_BATCH__INIT;
    ProtobufCBinaryData bytes;
    step.job = job;
    step.epoch = assignments[worker]->epoch;
    step.rank = assignments[worker]->rank;
    step.step = number;
    step.skipped = skipped;
    step.loss = 2.5;
    step.seconds = 0.25;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    record.step = &step;
    bytes.data = message_pack(&record.base, &bytes.len);
    batch.stream = (char *)"telemetry";
    batch.first_sequence = number;
    batch.records = &bytes;
    batch.n_records = 1;
    party_tell(workers[worker], COORDINATOR_PUSH_TELEMETRY, &batch);
    free(bytes.data);
}

static void push_step(uint64_t number)
{
    push_step_of(0, number, false);
}

/* A job runs on both nodes. */
static void start(const char *more)
{
    workers[0] = cluster_worker(&cluster, "node-a", 1, GIB);
    workers[1] = cluster_worker(&cluster, "node-b", 1, GIB);
    Gimbal__SubmitReply *reply = submit(user, small, more);
    snprintf(job, sizeof job, "%s", reply->job);
    message_free(&reply->base);
    for (int i = 0; i < 2; i++) {
        assignments[i] = await_assignment(&cluster, workers[i]);
        tell_ready(workers[i], assignments[i]);
    }
    for (int i = 0; i < 2; i++)
        cluster_record(&cluster, workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
}

/* Each node tells of its steps when it comes to it. */
START_TEST(a_rank_that_is_heard_of_late_does_not_undo_what_others_have_skipped)
{
    start("devices: {min: 2, max: 2}\nplan: {search: uniform}\nelastic: {max_skipped: 2}\n");
    push_step_of(0, 1, false);
    push_step_of(0, 2, true);
    push_step_of(1, 1, false);
    push_step_of(0, 3, true);
    const Gimbal__Event *event = cluster_event(&cluster, user, "job-failing");
    ck_assert_msg(strstr(event->text, "no step from 2 to 3 had a finite loss") != NULL, "%s",
                  event->text);
}
END_TEST

/* What the other ranks have is not in the coordinator's record; it is told by those that begin. */
START_TEST(executors_that_stay_are_given_the_next_epoch)
{
    start("devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    ck_assert(assignments[0]->keeps);
    for (uint64_t step = 1; step <= 2; step++)
        push_step(step);
    party_leave(&cluster, workers[1]);
    const Gimbal__WorkerRecord *record =
        cluster_record(&cluster, workers[0], GIMBAL__WORKER_RECORD__RECORD_QUIESCE);
    ck_assert_uint_eq(record->quiesce->epoch, 1);
    ck_assert_uint_eq(record->quiesce->n_ranks, 1);
    assert_job(user, job, GIMBAL__JOB_STATUS__STATE__REPLANNING, "worker node-b was lost");
    tell_stopped(workers[0], assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, "");
    assert_job(user, job, GIMBAL__JOB_STATUS__STATE__PENDING,
               "the cluster has only 1; replan 1 of 20: worker node-b was lost");
    workers[1] = cluster_worker(&cluster, "node-c", 1, GIB);
    for (int i = 0; i < 2; i++) {
        assignments[i] = await_assignment(&cluster, workers[i]);
        ck_assert_uint_eq(assignments[i]->epoch, 2);
        Gimbal__ReadyRequest ready = ready_request(assignments[i]);
        ready.step = 1;
        ready.from_memory = true;
        ready.bytes_arrived = 1024;
        party_tell(workers[i], COORDINATOR_READY, &ready);
    }
    Gimbal__GetJobReply *reply = get_job(user, job);
    ck_assert_uint_eq(reply->status->step, 1);
    message_free(&reply->base);
    push_step(3);
    const Gimbal__Event *event = cluster_event(&cluster, user, "job-replanned");
    ck_assert_msg(strstr(event->text, "continues after step 1 from memory, 1 steps lost, 2.0 KiB "
                                      "moved"),
                  "%s", event->text);
}
END_TEST

/* One is looked at at a time, in order: so what was asked before it has been answered. */
static void ask_for_a_plan(void)
{
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    spec.yaml = job_yaml(small, "plan: {search: uniform}\n");
    request.spec = &spec;
    request.dry_run = true;
    party_tell(user, COORDINATOR_SUBMIT, &request);
    free(spec.yaml);
}

static void check_chosen_before(const Gimbal__Event *event, const char *words)
{
    json_t *json = json_loads(event->json, 0, NULL);
    ck_assert_msg(json_is_true(json_object_get(json, "planned_before")), "%s", event->json);
    ck_assert_msg(strstr(event->text, words) != NULL, "%s", event->text);
    json_decref(json);
}

START_TEST(the_plan_without_a_node_is_there_when_it_is_lost)
{
    start("devices: {min: 1, max: 2}\nplan: {search: uniform}\n");
    push_step(1);
    for (int i = 0; i < 3; i++)
        ask_for_a_plan();
    party_leave(&cluster, workers[_i]);
    tell_stopped(workers[1 - _i], assignments[1 - _i], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED,
                 "");
    cluster_event(&cluster, user, "plan-chosen");
    const Gimbal__Event *event = cluster_event(&cluster, user, "plan-chosen");
    check_chosen_before(event, "on 1 device:");
}
END_TEST

/* Long, and worth more than one device. */
static void start_alone(void)
{
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    spec.yaml = (char *)"apiVersion: gimbal/v1\n"
                        "name: long\n"
                        "model: {family: gpt, layers: 4, hidden: 512, heads: 8, seq: 256}\n"
                        "data: {text: [/data/corpus.txt]}\n"
                        "train: {steps: 1000000, global_batch: 64, lr: 0.001}\n"
                        "devices: {min: 1, max: 2}\n"
                        "plan: {search: uniform}\n";
    request.spec = &spec;
    workers[0] = cluster_worker(&cluster, "node-a", 1, 16 * GIB);
    Gimbal__SubmitReply *reply = party_call(user, COORDINATOR_SUBMIT, &request);
    snprintf(job, sizeof job, "%s", reply->job);
    message_free(&reply->base);
    assignments[0] = await_assignment(&cluster, workers[0]);
    tell_ready(workers[0], assignments[0]);
    cluster_record(&cluster, workers[0], GIMBAL__WORKER_RECORD__RECORD_GO);
    push_step(1);
    cluster_event(&cluster, user, "plan-chosen");
}

START_TEST(a_job_grows_onto_a_node_that_joins)
{
    start_alone();
    workers[1] = cluster_worker(&cluster, "node-b", 1, 16 * GIB);
    cluster_record(&cluster, workers[0], GIMBAL__WORKER_RECORD__RECORD_QUIESCE);
    const Gimbal__Event *event = cluster_event(&cluster, user, "job-replanning");
    ck_assert_msg(strstr(event->text, "2 devices instead of 1") != NULL, "%s", event->text);
    tell_stopped(workers[0], assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, "");
    check_chosen_before(cluster_event(&cluster, user, "plan-chosen"), "on 2 devices");
    for (int i = 0; i < 2; i++) {
        assignments[i] = await_assignment(&cluster, workers[i]);
        ck_assert_uint_eq(assignments[i]->epoch, 2);
        ck_assert_uint_eq(assignments[i]->rank_count, 2);
        tell_ready(workers[i], assignments[i]);
    }
    for (int i = 0; i < 2; i++)
        cluster_record(&cluster, workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
}
END_TEST

/* Of its steps nobody has told: the last word says what the loss was, and what it was on other
 * data. */
START_TEST(the_last_word_of_a_rank_ends_the_job_and_has_its_figures)
{
    start("devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    push_step(1);
    Gimbal__LastStep last = GIMBAL__LAST_STEP__INIT;
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    last.loss = 1.25;
    last.held_out_loss = 1.5;
    last.held_out_targets = 64;
    stopped.job = job;
    stopped.epoch = assignments[1]->epoch;
    stopped.rank = assignments[1]->rank;
    stopped.cause = GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
    stopped.step = 3;
    stopped.last = &last;
    party_tell(workers[1], COORDINATOR_STOPPED, &stopped);
    const Gimbal__Event *event = cluster_event(&cluster, user, "evaluation");
    ck_assert_msg(strstr(event->text, "step 3 held-out loss 1.500 over 64 targets"), "%s",
                  event->text);
    party_leave(&cluster, workers[0]);
    cluster_event(&cluster, user, "job-done");
    Gimbal__GetJobReply *reply = get_job(user, job);
    ck_assert_uint_eq(reply->status->step, 3);
    ck_assert_double_eq(reply->status->loss, 1.25);
    message_free(&reply->base);
    cluster_record(&cluster, workers[1], GIMBAL__WORKER_RECORD__RECORD_DROP);
}
END_TEST

/* It came while the job broke: there is no other epoch, of which anything could be told. */
START_TEST(a_word_that_crosses_a_loss_ends_the_job_and_tells_of_no_replan)
{
    start("devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    push_step(1);
    Gimbal__LastStep last = GIMBAL__LAST_STEP__INIT;
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    stopped.job = job;
    stopped.epoch = assignments[0]->epoch;
    stopped.rank = assignments[0]->rank;
    stopped.cause = GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
    stopped.step = 3;
    stopped.last = &last;
    party_leave(&cluster, workers[1]);
    cluster_event(&cluster, user, "job-replanning");
    party_tell(workers[0], COORDINATOR_STOPPED, &stopped);
    const Gimbal__Event *event;
    do {
        event = cluster_event(&cluster, user, NULL);
        ck_assert_str_ne(event->kind, "job-replanned");
    } while (strcmp(event->kind, "job-done") != 0);
}
END_TEST

/* A node was lost with steps that it had not told of. It is back as another instance, and tells
 * them; so may those that went on. What nobody went on from is not the job's. */
START_TEST(steps_that_are_heard_of_late_are_the_jobs_if_it_went_on_from_them)
{
    start("devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    const Gimbal__Assignment before =
        *assignments[0]; /* its numbers; its texts go with the party */
    push_step(1);
    party_leave(&cluster, workers[0]);
    cluster_record(&cluster, workers[1], GIMBAL__WORKER_RECORD__RECORD_QUIESCE);
    tell_stopped(workers[1], assignments[1], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, "");
    workers[0] = cluster_worker(&cluster, "node-c", 1, GIB);
    for (int i = 0; i < 2; i++) {
        assignments[i] = await_assignment(&cluster, workers[i]);
        Gimbal__ReadyRequest ready = ready_request(assignments[i]);
        ready.step = 2;
        ready.from_memory = true;
        party_tell(workers[i], COORDINATOR_READY, &ready);
    }
    const Gimbal__Assignment *now = assignments[0];
    assignments[0] = &before;
    push_step(2);
    push_step(3);
    assignments[0] = now;
    Gimbal__GetJobReply *reply = get_job(user, job);
    ck_assert_uint_eq(reply->status->step, 2);
    ck_assert_double_eq(reply->status->loss, 2.5);
    message_free(&reply->base);
}
END_TEST

START_TEST(a_job_that_waits_has_no_loss)
{
    Gimbal__SubmitReply *submitted = submit(user, small, "");
    Gimbal__GetJobReply *reply = get_job(user, submitted->job);
    ck_assert(isnan(reply->status->loss));
    message_free(&reply->base);
    message_free(&submitted->base);
}
END_TEST

SUITE(stays)
{
    TCase *tcase = tcase_create("stays");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_rank_that_is_heard_of_late_does_not_undo_what_others_have_skipped);
    tcase_add_test(tcase, executors_that_stay_are_given_the_next_epoch);
    tcase_add_loop_test(tcase, the_plan_without_a_node_is_there_when_it_is_lost, 0, 2);
    tcase_add_test(tcase, a_job_grows_onto_a_node_that_joins);
    tcase_add_test(tcase, the_last_word_of_a_rank_ends_the_job_and_has_its_figures);
    tcase_add_test(tcase, a_word_that_crosses_a_loss_ends_the_job_and_tells_of_no_replan);
    tcase_add_test(tcase, steps_that_are_heard_of_late_are_the_jobs_if_it_went_on_from_them);
    tcase_add_test(tcase, a_job_that_waits_has_no_loss);
    return suite_run("stays", tcase, NULL);
}
