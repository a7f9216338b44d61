/* test_submit.c - what a real coordinator answers to a wish: no, not yet, or a plan. */
#include "common/base/memory.h"
#include "common/message/message.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/planner.h"
#include "tests/cluster/small_job.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *model, *more;
    enum rpc_status status;
    const char *words;
} refusals[] = {
    {"family: lstm, layers: 2, hidden: 32, heads: 4, seq: 16", "", RPC_INVALID_ARGUMENT,
     "model.family 'lstm' is unknown; known: gpt"},
    {"family: gpt, layers: 2, hidden: 32, heads: 5, seq: 16", "", RPC_INVALID_ARGUMENT, "heads"},
    {"family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, depth: 3", "", RPC_INVALID_ARGUMENT,
     "job file:3"},
    {small, "plan: {search: magic}\n", RPC_INVALID_ARGUMENT, "plan.search 'magic' is unknown"},
    {small, "plan: {schedule: zigzag}\n", RPC_INVALID_ARGUMENT,
     "plan.schedule 'zigzag' is unknown"},
    {small, "plan: {forbid: {roles: [tensr]}}\n", RPC_INVALID_ARGUMENT,
     "plan.forbid.roles 'tensr' is unknown"},
    {small, "devices: {max: 2}\nplan: {search: uniform, pin: {tp: 3}}\n", RPC_INVALID_ARGUMENT,
     "plan.pin"},
    {"family: gpt, layers: 2, hidden: 512, heads: 4, seq: 512",
     "devices: {max: 2}\nplan: {search: uniform, memory: 1MiB}\n", COORDINATOR_NO_PLAN,
     "no plan fits: the smallest of"},
    {"family: bert, layers: 2, hidden: 32, heads: 4, seq: 16", "", RPC_UNIMPLEMENTED,
     "model.family bert can be planned, not trained: no data is masked for it yet"},
    {"family: vit, layers: 2, hidden: 32, heads: 4, seq: 16, patch: 2", "", RPC_UNIMPLEMENTED,
     "model.family vit can be planned, not trained: no data format has images yet"},
};
#define REFUSALS ((int)(sizeof refusals / sizeof *refusals))

START_TEST(a_job_that_can_never_run_is_refused_at_submit_in_words)
{
    struct cluster cluster;
    enum rpc_status status;
    struct error words;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    cluster_worker(&cluster, "node-a", 2, GIB);
    ck_assert_ptr_null(ask_submit(user, refusals[_i].model, refusals[_i].more, &status, &words));
    ck_assert_msg(status == refusals[_i].status, "%s: %s", rpc_status_name(status), words.text);
    ck_assert_msg(strstr(words.text, refusals[_i].words) != NULL, "%s", words.text);
    /* It still serves. */
    Gimbal__SubmitReply *reply = submit(user, small, "devices: {max: 2}\nplan: {search: uniform}");
    message_free(&reply->base);
    cluster_stop(&cluster);
}
END_TEST

/* The least memory that any plan of the small job on so many devices needs on one. */
static uint64_t least_memory(int devices)
{
    struct profile profile =
        profile_analytic(1e11, 2e10, 0.5, (struct hardware_link){0}, (struct hardware_link){0});
    const struct planner_device device = {"node-a/0", "boot-1", 1, &profile};
    const struct planner_device all[2] = {device, device};
    char *more =
        xasprintf("devices: {min: %d, max: %d}\nplan: {search: uniform}", devices, devices);
    char *text = job_yaml(small, more);
    struct planner_request request = {.devices = all, .device_count = devices};
    struct job_config *config;
    struct graph *graph;
    struct planner_result result;
    uint64_t least = UINT64_MAX;
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job", &config, NULL), 0);
    ck_assert_int_eq(planner_graph(config, &graph, NULL), 0);
    request.job = config;
    request.graph = graph;
    ck_assert_int_eq(planner_run(&request, &result, NULL), -ENOSPC); /* everything was tried */
    for (size_t i = 0; i < result.count; i++)
        if (result.candidates[i].plan->predicted.memory_bytes_max < least)
            least = result.candidates[i].plan->predicted.memory_bytes_max;
    candidates_finish(&result);
    graph_destroy(graph);
    job_config_destroy(config);
    free(text);
    free(more);
    return least;
}

START_TEST(a_job_waits_for_the_devices_that_would_do)
{
    struct cluster cluster;
    uint64_t memory_bytes = least_memory(1) - 1;
    ck_assert_uint_le(least_memory(2), memory_bytes);
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    Gimbal__SubmitReply *reply = submit(user, small, "plan: {search: uniform}\n");
    ck_assert_str_eq(reply->waiting_reason, "it needs 1 device, but no worker offers any");
    assert_job(user, reply->job, GIMBAL__JOB_STATUS__STATE__PENDING, "no worker offers any");
    /* One such device does not hold the model; two do, and then it starts. */
    struct party *workers[2] = {cluster_worker(&cluster, "node-a", 1, memory_bytes)};
    cluster_event(&cluster, user, "job-planning");
    cluster_event(&cluster, user, "job-pending");
    assert_job(user, reply->job, GIMBAL__JOB_STATUS__STATE__PENDING,
               "its memory needs 2 devices of one kind, but the cluster has only 1: no plan "
               "fits: ");
    Gimbal__GetJobReply *known = get_job(user, reply->job);
    ck_assert_str_eq(known->status->cause, "InfeasibleMemory");
    message_free(&known->base);
    workers[1] = cluster_worker(&cluster, "node-b", 1, memory_bytes);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(await_assignment(&cluster, workers[i])->job, reply->job);
    message_free(&reply->base);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(the_same_wish_is_one_job)
{
    static const struct rpc_call_options options = {.deadline_ms = 10000,
                                                    .idempotency_key = "wish-1"};
    struct cluster cluster;
    struct error err = {""};
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    spec.yaml = job_yaml(small, "");
    request.spec = &spec;
    for (int i = 0; i < 2; i++) {
        ProtobufCMessage *reply = NULL;
        rpc_client_call(user->client, COORDINATOR_SUBMIT, &request.base, &options, &reply, &err);
        ck_assert_msg(reply != NULL, "%s", err.text);
        ck_assert_str_eq(((Gimbal__SubmitReply *)reply)->job, "j-1");
        message_free(reply);
    }
    Gimbal__ListJobsRequest list = GIMBAL__LIST_JOBS_REQUEST__INIT;
    Gimbal__ListJobsReply *jobs = party_call(user, COORDINATOR_LIST_JOBS, &list);
    ck_assert_uint_eq(jobs->n_jobs, 1);
    ck_assert_str_eq(jobs->jobs[0]->user, "ada");
    message_free(&jobs->base);
    free(spec.yaml);
    cluster_stop(&cluster);
}
END_TEST

/* A worker's folder is whichever it was started in. */
START_TEST(data_that_each_node_would_look_for_elsewhere_is_refused)
{
    struct cluster cluster;
    enum rpc_status status;
    struct error words;
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    spec.yaml =
        (char *)"apiVersion: gimbal/v1\n"
                "name: small\n"
                "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, vocab: 256}\n"
                "data: {tokens: [/data/a.bin, b.bin]}\n"
                "train: {steps: 3, global_batch: 4, lr: 0.001}\n";
    request.spec = &spec;
    ck_assert_ptr_null(party_ask(user, COORDINATOR_SUBMIT, &request, &status, &words));
    ck_assert_int_eq(status, RPC_INVALID_ARGUMENT);
    ck_assert_msg(strstr(words.text, "data.tokens 'b.bin' must begin with '/'") != NULL, "%s",
                  words.text);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_plan_that_comes_with_the_job_is_the_one_that_runs)
{
    struct cluster cluster;
    enum rpc_status status;
    struct error words;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    struct party *worker = cluster_worker(&cluster, "node-a", 2, GIB);
    Gimbal__PlanRequest ask = GIMBAL__PLAN_REQUEST__INIT;
    ask.job_yaml = job_yaml(small, "plan: {search: uniform, pin: {pp: 2}}\n");
    Gimbal__PlanReply *plan = party_call(user, COORDINATOR_PLAN, &ask);
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    spec.yaml = job_yaml(small, "");
    spec.plan = plan->plan;
    party_tell(user, COORDINATOR_SUBMIT, &request);
    const Gimbal__Assignment *assignment = await_assignment(&cluster, worker);
    ck_assert_str_eq(assignment->plan->id, plan->plan->id);
    ck_assert_uint_eq(assignment->program_hash, lowered_hash(assignment));

    char *whole = plan->plan->json;
    plan->plan->json = (char *)"{\"kind\": \"Plan\"}";
    ck_assert_ptr_null(party_ask(user, COORDINATOR_SUBMIT, &request, &status, &words));
    ck_assert_int_eq(status, RPC_INVALID_ARGUMENT);
    /* Made for a node that is not there: refused, though the job would only wait. */
    char *other = xstrdup(whole);
    for (char *at = other; (at = strstr(at, "node-a")); at++)
        at[5] = 'x';
    plan->plan->json = other;
    ck_assert_ptr_null(party_ask(user, COORDINATOR_SUBMIT, &request, &status, &words));
    ck_assert_int_eq(status, RPC_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(words.text, "the plan puts rank 0 on node-x/0"));
    free(other);
    plan->plan->json = whole;
    message_free(&plan->base);
    free(spec.yaml);
    free(ask.job_yaml);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_drained_node_gets_no_job_until_it_is_undrained)
{
    struct cluster cluster;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    struct party *worker = cluster_worker(&cluster, "node-a", 1, GIB);
    Gimbal__DrainRequest drain = GIMBAL__DRAIN_REQUEST__INIT;
    drain.node = (char *)"node-a";
    drain.reason = (char *)"new fan";
    party_tell(user, COORDINATOR_DRAIN, &drain);
    Gimbal__SubmitReply *reply = submit(user, small, "plan: {search: uniform}\n");
    ck_assert_str_eq(reply->waiting_reason, "it needs 1 device, and 1 node with 1 device is "
                                            "drained: 'gimbal undrain NODE' gives one back");
    Gimbal__ListNodesRequest list = GIMBAL__LIST_NODES_REQUEST__INIT;
    Gimbal__ListNodesReply *nodes = party_call(user, COORDINATOR_LIST_NODES, &list);
    ck_assert_int_eq(nodes->nodes[0]->state, GIMBAL__NODE_STATUS__STATE__DRAINED);
    ck_assert_str_eq(nodes->nodes[0]->reason, "new fan");
    ck_assert_str_eq(nodes->nodes[0]->hardware->devices[0]->name, "EPYC");
    message_free(&nodes->base);
    drain.undo = true;
    party_tell(user, COORDINATOR_DRAIN, &drain);
    ck_assert_str_eq(await_assignment(&cluster, worker)->job, reply->job);
    message_free(&reply->base);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_plan_is_made_without_a_job)
{
    struct cluster cluster;
    enum rpc_status status;
    struct error words;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    request.job_yaml = job_yaml(small, "");
    request.search = (char *)"uniform";
    ck_assert_ptr_null(party_ask(user, COORDINATOR_PLAN, &request, &status, &words));
    ck_assert_int_eq(status, RPC_ABORTED);
    ck_assert_ptr_nonnull(strstr(words.text, "no node is alive: start one with 'gimbal-worker'"));
    cluster_worker(&cluster, "node-a", 2, GIB);
    Gimbal__PlanReply *reply = party_call(user, COORDINATOR_PLAN, &request);
    struct plan *plan;
    ck_assert_int_eq(plan_decode(reply->plan->json, &plan, &words), 0);
    ck_assert_str_eq(plan_device(plan, 0), "node-a/0");
    ck_assert_ptr_nonnull(strstr(reply->explanation, reply->plan->id));
    plan_destroy(plan);
    message_free(&reply->base);
    /* A peak rate is no measurement. */
    request.cost = (char *)"measured";
    ck_assert_ptr_null(party_ask(user, COORDINATOR_PLAN, &request, &status, &words));
    ck_assert_str_eq(words.text, "node-a/0 has no measured profile yet");
    free(request.job_yaml);
    Gimbal__ListJobsRequest list = GIMBAL__LIST_JOBS_REQUEST__INIT;
    list.all = true;
    Gimbal__ListJobsReply *jobs = party_call(user, COORDINATOR_LIST_JOBS, &list);
    ck_assert_uint_eq(jobs->n_jobs, 0);
    message_free(&jobs->base);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_plan_is_made_for_a_cluster_that_is_only_written_down)
{
    static const char cluster_yaml[] =
        "apiVersion: gimbal/v1\n"
        "kind: Cluster\n"
        "nodes: [{name: far, devices: {kind: gpu, count: 4, memory: 1GiB, flops: 1TFLOP/s,\n"
        "         bandwidth: 100GB/s}}]\n"
        "links: {host: {bandwidth: 10GB/s, latency: 5us}}\n";
    struct cluster cluster;
    enum rpc_status status;
    struct error words;
    struct plan *plan;
    cluster_start(&cluster, patient);
    struct party *user = cluster_user(&cluster);
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    request.job_yaml = job_yaml(small, "devices: {min: 4}\nplan: {search: uniform}\n");
    request.cluster_yaml = (char *)cluster_yaml;
    Gimbal__PlanReply *reply = party_call(user, COORDINATOR_PLAN, &request);
    ck_assert_int_eq(plan_decode(reply->plan->json, &plan, &words), 0);
    ck_assert_str_eq(plan_device(plan, 3), "far/3");
    plan_destroy(plan);
    message_free(&reply->base);
    request.cluster_yaml = (char *)"apiVersion: gimbal/v1\nkind: Cluster\nnodes: []\n";
    ck_assert_ptr_null(party_ask(user, COORDINATOR_PLAN, &request, &status, &words));
    ck_assert_int_eq(status, RPC_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(words.text, "cluster file:3:8: nodes: names no node"));
    free(request.job_yaml);
    cluster_stop(&cluster);
}
END_TEST

SUITE(submit)
{
    TCase *answers = tcase_create("answers"), *plans = tcase_create("plans");
    tcase_add_test(answers, data_that_each_node_would_look_for_elsewhere_is_refused);
    tcase_add_loop_test(answers, a_job_that_can_never_run_is_refused_at_submit_in_words, 0,
                        REFUSALS);
    tcase_add_test(answers, a_job_waits_for_the_devices_that_would_do);
    tcase_add_test(answers, the_same_wish_is_one_job);
    tcase_add_test(answers, a_drained_node_gets_no_job_until_it_is_undrained);
    tcase_add_test(plans, a_plan_that_comes_with_the_job_is_the_one_that_runs);
    tcase_add_test(plans, a_plan_is_made_without_a_job);
    tcase_add_test(plans, a_plan_is_made_for_a_cluster_that_is_only_written_down);
    return suite_run("submit", answers, plans, NULL);
}
