/* test_coordinator.c - jobs through a real coordinator: from submit to done, and every way that
 * ends elsewhere. */
#include "common/message/message.h"
#include "tests/cluster/small_job.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char on_two[] = "devices: {min: 2, max: 2}\nplan: {search: uniform}\n"
                             "elastic: {replan: false}\n";

/* Two workers of one device each, with a job that runs on both. */
struct pair {
    struct cluster cluster;
    struct party *user, *workers[2];
    const Gimbal__Assignment *assignments[2];
    char job[32];
};

static void pair_start(struct pair *pair)
{
    cluster_start(&pair->cluster, patient);
    pair->user = cluster_user(&pair->cluster);
    pair->workers[0] = cluster_worker(&pair->cluster, "node-a", 1, GIB);
    pair->workers[1] = cluster_worker(&pair->cluster, "node-b", 1, GIB);
    Gimbal__SubmitReply *reply = submit(pair->user, small, on_two);
    ck_assert_str_eq(reply->waiting_reason, "");
    snprintf(pair->job, sizeof pair->job, "%s", reply->job);
    message_free(&reply->base);
    for (int i = 0; i < 2; i++)
        pair->assignments[i] = await_assignment(&pair->cluster, pair->workers[i]);
}

static void pair_run(struct pair *pair)
{
    pair_start(pair);
    for (int i = 0; i < 2; i++)
        tell_ready(pair->workers[i], pair->assignments[i]);
    for (int i = 0; i < 2; i++)
        cluster_record(&pair->cluster, pair->workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
}

START_TEST(each_rank_is_assigned_its_program_on_its_device)
{
    struct pair pair;
    pair_start(&pair);
    unsigned ranks = 0;
    for (int i = 0; i < 2; i++) {
        const Gimbal__Assignment *assignment = pair.assignments[i];
        ck_assert_str_eq(assignment->job, pair.job);
        ck_assert_uint_eq(assignment->epoch, 1);
        ck_assert_uint_eq(assignment->rank_count, 2);
        ck_assert_uint_eq(assignment->device_index, 0);
        ck_assert_uint_eq(assignment->program_hash, lowered_hash(assignment));
        ck_assert_uint_eq(assignment->n_ranks, 2);
        const Gimbal__RankAddress *own = assignment->ranks[assignment->rank];
        ck_assert_str_eq(own->node, pair.workers[i]->name);
        ck_assert_str_eq(own->host_address, "127.0.0.1");
        ranks |= 1u << assignment->rank;
    }
    ck_assert_uint_eq(ranks, 3);

    const Gimbal__Event *event = cluster_event(&pair.cluster, pair.user, "plan-chosen");
    ck_assert_ptr_nonnull(strstr(event->text, "predicted"));
    ck_assert_ptr_nonnull(strstr(event->json, "DIVISION")); /* the table of candidates */
    Gimbal__GetJobReply *job = get_job(pair.user, pair.job);
    ck_assert_str_eq(job->plan->json, pair.assignments[0]->plan->json);
    ck_assert_ptr_nonnull(strstr(job->candidates, "chosen"));
    ck_assert(job->status->predicted_step_time_s > 0);
    ck_assert_uint_eq(job->status->n_devices, 2);
    message_free(&job->base);
    cluster_stop(&pair.cluster);
}
END_TEST

static void push(struct party *worker, const Gimbal__TelemetryRecord *record, uint64_t sequence)
{
    Gimbal__PushBatch batch = GIMBAL__PUSH_BATCH__INIT;
    ProtobufCBinaryData bytes;
    bytes.data = message_pack(&record->base, &bytes.len);
    batch.stream = (char *)"telemetry";
    batch.first_sequence = sequence;
    batch.records = &bytes;
    batch.n_records = 1;
    Gimbal__PushAck *ack = party_call(worker, COORDINATOR_PUSH_TELEMETRY, &batch);
    ck_assert_uint_eq(ack->acknowledged, sequence);
    message_free(&ack->base);
    free(bytes.data);
}

static void push_step(struct party *worker, const Gimbal__Assignment *assignment, uint64_t number)
{
    Gimbal__StepRecord step = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    step.job = assignment->job;
    step.epoch = assignment->epoch;
    step.rank = assignment->rank;
    step.step = number;
    step.loss = 5.0 - (double)number;
    step.seconds = 0.25 * (1 + assignment->rank);
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    record.step = &step;
    push(worker, &record, number);
}

static void push_evaluation(struct party *worker, const Gimbal__Assignment *assignment,
                            uint64_t sequence)
{
    Gimbal__EvaluationRecord evaluation = GIMBAL__EVALUATION_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    evaluation.job = assignment->job;
    evaluation.epoch = assignment->epoch;
    evaluation.step = 3;
    evaluation.loss = 2.5;
    evaluation.targets = 64;
    evaluation.text = (ProtobufCBinaryData){9, (uint8_t *)"To be\xff or"};
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION;
    record.evaluation = &evaluation;
    push(worker, &record, sequence);
}

static void push_line(struct party *worker, const Gimbal__Assignment *assignment, uint64_t sequence)
{
    Gimbal__LogLine line = GIMBAL__LOG_LINE__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    line.job = assignment->job;
    line.epoch = assignment->epoch;
    line.rank = assignment->rank;
    line.level = (char *)"warn";
    line.text = (char *)"groups formed";
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_LOG;
    record.log = &line;
    push(worker, &record, sequence);
}

START_TEST(a_job_runs_from_submit_to_done)
{
    struct pair pair;
    pair_run(&pair);
    cluster_event(&pair.cluster, pair.user, "job-running");
    for (uint64_t step = 1; step <= 3; step++)
        for (int i = 0; i < 2; i++)
            push_step(pair.workers[i], pair.assignments[i], step);
    push_evaluation(pair.workers[0], pair.assignments[0], 4);
    push_line(pair.workers[1], pair.assignments[1], 4);
    /* What is not of this epoch, or of another's rank, is passed over. */
    Gimbal__Assignment stale = *pair.assignments[1];
    stale.epoch++;
    push_step(pair.workers[1], &stale, 5);
    push_step(pair.workers[1], pair.assignments[0], 6);

    Gimbal__GetJobReply *job = get_job(pair.user, pair.job);
    ck_assert_int_eq(job->status->state, GIMBAL__JOB_STATUS__STATE__RUNNING);
    ck_assert_uint_eq(job->status->step, 3);
    ck_assert_double_eq(job->status->loss, 2.0);
    ck_assert_double_eq(job->status->step_time_s, 0.5); /* of the slower rank */
    ck_assert_double_eq(job->status->tokens_per_s, 4 * 16 / 0.5);
    ck_assert_uint_eq(job->n_evaluations, 1);
    ck_assert_double_eq(job->evaluations[0]->loss, 2.5);
    ck_assert_uint_eq(job->sample.len, 9);
    message_free(&job->base);
    ck_assert_ptr_nonnull(
        strstr(cluster_event(&pair.cluster, pair.user, "evaluation")->text, "2.500"));
    ck_assert_str_eq(cluster_event(&pair.cluster, pair.user, "sample")->text, "To be? or");

    Gimbal__GetLogsRequest logs = GIMBAL__GET_LOGS_REQUEST__INIT;
    logs.job = pair.job;
    logs.rank = -1;
    Gimbal__GetLogsReply *lines = party_call(pair.user, COORDINATOR_GET_LOGS, &logs);
    ck_assert_uint_eq(lines->n_lines, 1);
    ck_assert_str_eq(lines->lines[0]->text, "groups formed");
    ck_assert_str_eq(lines->lines[0]->level, "warn");
    ck_assert_uint_eq(lines->lines[0]->epoch, pair.assignments[1]->epoch);
    ck_assert_uint_eq(lines->last, 1);
    message_free(&lines->base);

    for (int i = 0; i < 2; i++)
        tell_stopped(pair.workers[i], pair.assignments[i], GIMBAL__STOPPED_REQUEST__CAUSE__DONE,
                     "");
    cluster_event(&pair.cluster, pair.user, "job-done");
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__DONE, "");

    /* Its devices are free again. */
    Gimbal__ListNodesRequest list = GIMBAL__LIST_NODES_REQUEST__INIT;
    Gimbal__ListNodesReply *nodes = party_call(pair.user, COORDINATOR_LIST_NODES, &list);
    ck_assert_uint_eq(nodes->n_nodes, 2);
    ck_assert_str_eq(nodes->nodes[0]->device_jobs[0], "");
    message_free(&nodes->base);
    cluster_stop(&pair.cluster);
}
END_TEST

/* How a held call ended. */
struct outcome {
    bool done;
    enum rpc_status status;
    char value[16];
};

static void keep_outcome(void *data, const struct rpc_result *result)
{
    struct outcome *outcome = data;
    const Gimbal__RendezvousReply *reply = result->reply;
    outcome->done = true;
    outcome->status = result->status;
    if (reply && reply->there)
        snprintf(outcome->value, sizeof outcome->value, "%.*s", (int)reply->value.len,
                 (const char *)reply->value.data);
}

START_TEST(ranks_find_each_other_until_their_epoch_ends)
{
    static const struct rpc_call_options options = {.deadline_ms = 60000};
    struct pair pair;
    struct outcome first = {0}, second = {0}, late = {0}, put = {0};
    pair_start(&pair);
    Gimbal__RendezvousRequest request = GIMBAL__RENDEZVOUS_REQUEST__INIT;
    request.job = pair.job;
    request.epoch = 1;
    request.key = (char *)"group-0/1";
    /* Two ranks of one worker may want the same key. */
    rpc_client_start(pair.workers[0]->client, COORDINATOR_RENDEZVOUS, &request.base, &options,
                     keep_outcome, &first);
    rpc_client_start(pair.workers[0]->client, COORDINATOR_RENDEZVOUS, &request.base, &options,
                     keep_outcome, &second);
    Gimbal__RendezvousRequest never = request;
    never.key = (char *)"nobody puts this";
    rpc_client_start(pair.workers[0]->client, COORDINATOR_RENDEZVOUS, &never.base, &options,
                     keep_outcome, &late);
    request.put = true;
    request.value = (ProtobufCBinaryData){5, (uint8_t *)":4711"};
    rpc_client_start(pair.workers[1]->client, COORDINATOR_RENDEZVOUS, &request.base, &options,
                     keep_outcome, &put);
    cluster_pump(&pair.cluster, &first.done);
    cluster_pump(&pair.cluster, &second.done);
    cluster_pump(&pair.cluster, &put.done);
    ck_assert_str_eq(first.value, ":4711");
    ck_assert_str_eq(second.value, ":4711");
    ck_assert_int_eq(put.status, RPC_OK);
    ck_assert(!late.done);

    for (int i = 0; i < 2; i++)
        tell_stopped(pair.workers[i], pair.assignments[i], GIMBAL__STOPPED_REQUEST__CAUSE__FAULT,
                     "no memory");
    cluster_pump(&pair.cluster, &late.done);
    ck_assert_int_eq(late.status, RPC_FAILED_PRECONDITION);
    cluster_stop(&pair.cluster);
}
END_TEST

/* Everything of the first epoch, with the worker of rank 1 gone. */
static void lose_worker(struct pair *pair)
{
    party_leave(&pair->cluster, pair->workers[1]);
    cluster_record(&pair->cluster, pair->workers[0], GIMBAL__WORKER_RECORD__RECORD_CANCEL);
    cluster_event(&pair->cluster, pair->user, "node-lost");
    tell_stopped(pair->workers[0], pair->assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED,
                 "");
}

START_TEST(a_job_whose_worker_is_lost_begins_again_as_soon_as_it_can)
{
    struct pair pair;
    pair_run(&pair);
    for (int i = 0; i < 2; i++)
        push_step(pair.workers[i], pair.assignments[i], 1);
    lose_worker(&pair);
    const Gimbal__Event *event = cluster_event(&pair.cluster, pair.user, "job-pending");
    ck_assert_ptr_nonnull(
        strstr(event->text, "PENDING: restart 1 of 20, from step 0: worker node-b was lost"));
    ck_assert_ptr_nonnull(strstr(event->json, "RestartPending"));
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__PENDING,
               "the cluster has only 1; restart 1 of 20, from step 0: worker node-b was lost");
    pair.workers[1] = cluster_worker(&pair.cluster, "node-c", 1, GIB);
    for (int i = 0; i < 2; i++) {
        pair.assignments[i] = await_assignment(&pair.cluster, pair.workers[i]);
        ck_assert_uint_eq(pair.assignments[i]->epoch, 2);
    }
    Gimbal__GetJobReply *job = get_job(pair.user, pair.job);
    ck_assert_uint_eq(job->status->step, 0);
    ck_assert_uint_eq(job->status->restarts, 1);
    ck_assert_uint_eq(job->status->restarts_max, 20);
    message_free(&job->base);
    for (int i = 0; i < 2; i++)
        tell_ready(pair.workers[i], pair.assignments[i]);
    for (int i = 0; i < 2; i++)
        cluster_record(&pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__RUNNING, "");
    cluster_stop(&pair.cluster);
}
END_TEST

static void tell_paused(struct party *worker, const Gimbal__Assignment *assignment, uint64_t number)
{
    Gimbal__PausedRequest request = GIMBAL__PAUSED_REQUEST__INIT;
    request.job = assignment->job;
    request.epoch = assignment->epoch;
    request.rank = assignment->rank;
    request.number = number;
    request.step = 7;
    party_tell(worker, COORDINATOR_PAUSED, &request);
}

START_TEST(a_job_is_paused_and_goes_on)
{
    struct pair pair;
    pair_run(&pair);
    Gimbal__PauseRequest request = GIMBAL__PAUSE_REQUEST__INIT;
    request.job = pair.job;
    request.reason = (char *)"for the night";
    party_tell(pair.user, COORDINATOR_PAUSE, &request);
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__PAUSING,
               "paused by ada: for the night");
    for (int i = 0; i < 2; i++) {
        const Gimbal__WorkerRecord *record = cluster_record(
            &pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_GO); /* once more */
        record =
            cluster_record(&pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_PAUSE);
        ck_assert_uint_eq(record->pause->number, 1);
        tell_paused(pair.workers[i], pair.assignments[i], 1);
    }
    cluster_event(&pair.cluster, pair.user, "job-paused");
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__PAUSED,
               "paused by ada: for the night");
    Gimbal__ResumeRequest resume = GIMBAL__RESUME_REQUEST__INIT;
    resume.job = pair.job;
    party_tell(pair.user, COORDINATOR_RESUME, &resume);
    for (int i = 0; i < 2; i++) {
        cluster_record(&pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
        const Gimbal__WorkerRecord *record =
            cluster_record(&pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_RESUME);
        ck_assert_uint_eq(record->resume->number, 1);
    }
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__RUNNING, "");
    cluster_stop(&pair.cluster);
}
END_TEST

START_TEST(a_cancelled_job_ends_once_its_ranks_have_stopped)
{
    struct pair pair;
    pair_run(&pair);
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    request.job = pair.job;
    request.reason = (char *)"wrong data";
    party_tell(pair.user, COORDINATOR_CANCEL, &request);
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__CANCELLING, "wrong data");
    for (int i = 0; i < 2; i++) {
        cluster_record(&pair.cluster, pair.workers[i], GIMBAL__WORKER_RECORD__RECORD_CANCEL);
        tell_stopped(pair.workers[i], pair.assignments[i],
                     GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "");
    }
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__CANCELLED, "cancelled by ada");
    cluster_stop(&pair.cluster);
}
END_TEST

START_TEST(a_rank_that_lowered_another_program_is_refused)
{
    struct pair pair;
    enum rpc_status status;
    struct error words;
    pair_start(&pair);
    Gimbal__ReadyRequest request = ready_request(pair.assignments[1]);
    request.program_hash++;
    ck_assert_ptr_null(party_ask(pair.workers[1], COORDINATOR_READY, &request, &status, &words));
    ck_assert_int_eq(status, RPC_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(words.text, "worker 'node-b' runs another release"));
    /* Nor may a worker speak for a rank that another has. */
    request = ready_request(pair.assignments[1]);
    ck_assert_ptr_null(party_ask(pair.workers[0], COORDINATOR_READY, &request, &status, &words));
    ck_assert_int_eq(status, RPC_FAILED_PRECONDITION);
    cluster_record(&pair.cluster, pair.workers[0], GIMBAL__WORKER_RECORD__RECORD_CANCEL);
    tell_stopped(pair.workers[0], pair.assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED,
                 "");
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__FAILED, "runs another release");
    cluster_stop(&pair.cluster);
}
END_TEST

START_TEST(ranks_that_read_other_data_are_refused_for_good)
{
    struct pair pair;
    enum rpc_status status;
    struct error words;
    pair_start(&pair);
    Gimbal__DataFile file = GIMBAL__DATA_FILE__INIT, *files[] = {&file};
    file.path = (char *)"/data/corpus.txt";
    for (int i = 0; i < 2; i++) {
        Gimbal__ReadyRequest request = ready_request(pair.assignments[i]);
        request.files = files;
        request.n_files = 1;
        file.size = i == 0 ? 1000 : 999;
        if (i == 0)
            party_tell(pair.workers[i], COORDINATOR_READY, &request);
        else
            ck_assert_ptr_null(
                party_ask(pair.workers[i], COORDINATOR_READY, &request, &status, &words));
    }
    ck_assert_int_eq(status, RPC_FAILED_PRECONDITION);
    cluster_record(&pair.cluster, pair.workers[0], GIMBAL__WORKER_RECORD__RECORD_CANCEL);
    tell_stopped(pair.workers[0], pair.assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED,
                 "");
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__FAILED,
               "the data are not the same on all nodes: '/data/corpus.txt' has 1000 bytes on "
               "node-a and 999 bytes on node-b");
    cluster_stop(&pair.cluster);
}
END_TEST

START_TEST(data_that_cannot_be_read_end_a_job_that_never_read_them)
{
    for (int trained = 0; trained < 2; trained++) {
        struct pair pair;
        if (trained)
            pair_run(&pair);
        else
            pair_start(&pair);
        if (trained)
            push_step(pair.workers[0], pair.assignments[0], 1);
        tell_stopped(pair.workers[0], pair.assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__DATA,
                     "data.text: there is no '/data/corpus.txt'");
        cluster_record(&pair.cluster, pair.workers[1], GIMBAL__WORKER_RECORD__RECORD_CANCEL);
        tell_stopped(pair.workers[1], pair.assignments[1],
                     GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "");
        if (trained) /* a node's trouble, which may pass */
            cluster_event(&pair.cluster, pair.user, "job-pending");
        else
            assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__FAILED,
                       "data.text: there is no '/data/corpus.txt'");
        cluster_stop(&pair.cluster);
    }
}
END_TEST

START_TEST(a_job_that_begins_again_must_read_what_it_read_before)
{
    struct pair pair;
    enum rpc_status status;
    struct error words;
    Gimbal__DataFile file = GIMBAL__DATA_FILE__INIT, *files[] = {&file};
    file.path = (char *)"/data/corpus.txt";
    file.size = 1000;
    pair_start(&pair);
    for (int i = 0; i < 2; i++) {
        Gimbal__ReadyRequest request = ready_request(pair.assignments[i]);
        request.files = files;
        request.n_files = 1;
        party_tell(pair.workers[i], COORDINATOR_READY, &request);
    }
    cluster_record(&pair.cluster, pair.workers[0], GIMBAL__WORKER_RECORD__RECORD_GO);
    push_step(pair.workers[0], pair.assignments[0], 1);
    lose_worker(&pair);
    pair.workers[1] = cluster_worker(&pair.cluster, "node-c", 1, GIB);
    pair.assignments[1] = await_assignment(&pair.cluster, pair.workers[1]);
    Gimbal__ReadyRequest request = ready_request(pair.assignments[1]);
    request.files = files;
    request.n_files = 1;
    file.hash = 1; /* written to meanwhile */
    ck_assert_ptr_null(party_ask(pair.workers[1], COORDINATOR_READY, &request, &status, &words));
    ck_assert_ptr_nonnull(strstr(words.text, "'/data/corpus.txt' is not the same"));
    ck_assert_ptr_nonnull(
        strstr(words.text, "in epoch 1 and 0000000000000001 on node-c in epoch 2"));
    pair.assignments[0] = await_assignment(&pair.cluster, pair.workers[0]);
    tell_stopped(pair.workers[0], pair.assignments[0], GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED,
                 "");
    assert_job(pair.user, pair.job, GIMBAL__JOB_STATUS__STATE__FAILED,
               "after 1 restart without getting past step 1: rank ");
    cluster_stop(&pair.cluster);
}
END_TEST

SUITE(coordinator)
{
    TCase *runs = tcase_create("runs"), *ends = tcase_create("ends");
    tcase_add_test(runs, each_rank_is_assigned_its_program_on_its_device);
    tcase_add_test(runs, a_job_runs_from_submit_to_done);
    tcase_add_test(runs, ranks_find_each_other_until_their_epoch_ends);
    tcase_add_test(ends, a_job_whose_worker_is_lost_begins_again_as_soon_as_it_can);
    tcase_add_test(runs, a_job_is_paused_and_goes_on);
    tcase_add_test(ends, a_cancelled_job_ends_once_its_ranks_have_stopped);
    tcase_add_test(ends, a_rank_that_lowered_another_program_is_refused);
    tcase_add_test(ends, ranks_that_read_other_data_are_refused_for_good);
    tcase_add_test(ends, data_that_cannot_be_read_end_a_job_that_never_read_them);
    tcase_add_test(ends, a_job_that_begins_again_must_read_what_it_read_before);
    return suite_run("coordinator", runs, ends, NULL);
}
