/* test_network.c - what a coordinator makes of what ranks have measured between their hosts: it is
 * known apart for data in the hosts' memory and in that of devices, asked for once, told, and
 * planned for. The workers are clients of the test. */
#include "tests/cluster/small_job.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/plan/plan.h"
#include "common/profile/profile.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 2
#define TOLD 1.13 /* by so much a figure may be rounded */

static const struct hardware_link within = {1e-5, 1e-10}, fast = {1e-5, 2e-10}, slow = {1e-3, 1e-6};

static struct cluster cluster;
static struct party *user, *gpus[RANKS], *cpus[RANKS];

static struct party *worker_on(const char *name, const char *host, enum hardware_kind kind)
{
    const struct profile profile = profile_analytic(1e12, 1e11, 1, within, within);
    char *text = profile_encode(&profile);
    const struct hardware_device device = {.kind = kind,
                                           .name = kind == HARDWARE_GPU ? "H200" : "EPYC",
                                           .cpuset = "0-3",
                                           .cores = 4,
                                           .memory_bytes = GIB,
                                           .flops = 1e12,
                                           .bandwidth = 1e11,
                                           .profile = text};
    struct hardware_report *report = hardware_report_create(name, host, "EPYC", "0-3");
    hardware_set_text(&report->address, "127.0.0.1");
    report->cores = 4;
    report->memory_bytes = GIB;
    hardware_report_add_device(report, &device);
    struct party *party = cluster_worker_with(&cluster, report);
    party->name = name;
    hardware_report_destroy(report);
    free(text);
    return party;
}

static void set_up(void)
{
    cluster_start(&cluster, patient);
    user = cluster_user(&cluster);
    gpus[0] = worker_on("gpu-a", "host-a", HARDWARE_GPU);
    gpus[1] = worker_on("gpu-b", "host-b", HARDWARE_GPU);
    cpus[0] = worker_on("cpu-a", "host-a", HARDWARE_CPU);
    cpus[1] = worker_on("cpu-b", "host-b", HARDWARE_CPU);
}

static void tear_down(void)
{
    cluster_stop(&cluster);
}

/* ---- a job on two hosts ---- */

struct run {
    struct party **workers;
    const Gimbal__Assignment *assignments[RANKS];
    double step_time_s; /* as it was predicted */
};

/* The queue grants GPUs as long as there are some. */
static void start(struct run *run, struct party **workers)
{
    Gimbal__SubmitReply *reply = submit(user, small,
                                        "devices: {min: 2, max: 2}\nplan: {pin: {dp: 2}}\n"
                                        "elastic: {replan: false}\n");
    *run = (struct run){.workers = workers};
    for (int i = 0; i < RANKS; i++)
        run->assignments[i] = await_assignment(&cluster, workers[i]);
    Gimbal__GetJobReply *job = get_job(user, reply->job);
    run->step_time_s = job->status->predicted_step_time_s;
    message_free(&job->base);
    message_free(&reply->base);
}

/* By the lower rank. */
static void tell_link(const struct run *run, bool in_devices, const struct hardware_link *link)
{
    int first = run->assignments[0]->rank == 0 ? 0 : 1;
    Gimbal__LinkRecord told = GIMBAL__LINK_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    Gimbal__PushBatch batch = GIMBAL__PUSH_BATCH__INIT;
    static uint64_t sequence;
    ProtobufCBinaryData bytes;
    told.job = run->assignments[first]->job;
    told.epoch = run->assignments[first]->epoch;
    told.peer = 1;
    told.latency_s = link->latency_s;
    told.seconds_per_byte = link->seconds_per_byte;
    told.in_devices = in_devices;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_LINK;
    record.link = &told;
    bytes.data = message_pack(&record.base, &bytes.len);
    batch.stream = (char *)"telemetry";
    batch.first_sequence = ++sequence;
    batch.records = &bytes;
    batch.n_records = 1;
    Gimbal__PushAck *ack = party_call(run->workers[first], COORDINATOR_PUSH_TELEMETRY, &batch);
    message_free(&ack->base);
    free(bytes.data);
}

static void finish(const struct run *run)
{
    for (int i = 0; i < RANKS; i++)
        tell_ready(run->workers[i], run->assignments[i]);
    for (int i = 0; i < RANKS; i++)
        cluster_record(&cluster, run->workers[i], GIMBAL__WORKER_RECORD__RECORD_GO);
    for (int i = 0; i < RANKS; i++)
        tell_stopped(run->workers[i], run->assignments[i], GIMBAL__STOPPED_REQUEST__CAUSE__DONE,
                     "");
    cluster_event(&cluster, user, "job-done");
}

static void check_asked(const struct run *run, bool asked)
{
    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(run->assignments[i]->measures_links, asked);
}

/* As users see the node. */
static void check_network(const char *name, double seconds_per_byte)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    Gimbal__ListNodesReply *reply = party_call(user, COORDINATOR_LIST_NODES, &request);
    size_t i = 0;
    while (i < reply->n_nodes && strcmp(reply->nodes[i]->name, name) != 0)
        i++;
    ck_assert_uint_lt(i, reply->n_nodes);
    static struct profile profile;
    ck_assert_int_eq(
        profile_decode(reply->nodes[i]->hardware->devices[0]->profile_json, &profile, NULL), 0);
    double ratio = profile.network.seconds_per_byte / seconds_per_byte;
    ck_assert_msg(ratio < TOLD && ratio > 1 / TOLD, "%s: %g s a byte, not %g", name,
                  profile.network.seconds_per_byte, seconds_per_byte);
    message_free(&reply->base);
}

/* As it is predicted for somebody who only asks what plan such a job would have. */
static double asked_step_s(void)
{
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    struct plan *plan;
    request.job_yaml = job_yaml(small, "devices: {min: 2, max: 2}\nplan: {pin: {dp: 2}}\n");
    Gimbal__PlanReply *reply = party_call(user, COORDINATOR_PLAN, &request);
    ck_assert_int_eq(plan_decode(reply->plan->json, &plan, NULL), 0);
    double step_time_s = plan->predicted.step_time_s;
    plan_destroy(plan);
    message_free(&reply->base);
    free(request.job_yaml);
    return step_time_s;
}

static void check_event(const char *words, const char *memory)
{
    const Gimbal__Event *event = cluster_event(&cluster, user, "link-measured");
    ck_assert_msg(strstr(event->text, words) != NULL, "%s", event->text);
    ck_assert_msg(strstr(event->json, memory) != NULL, "%s", event->json);
}

/* ---- cases ---- */

START_TEST(what_devices_measure_is_asked_for_once_and_planned_for)
{
    struct run first, second, third;
    start(&first, gpus);
    check_asked(&first, true);
    tell_link(&first, false, &fast);
    tell_link(&first, true, &slow);
    check_event(": between gpu-a and gpu-b ", "\"memory\":\"host\"");
    check_event(": between devices of gpu-a and gpu-b ", "\"memory\":\"device\"");
    for (int i = 0; i < RANKS; i++) {
        check_network(gpus[i]->name, slow.seconds_per_byte);
        check_network(cpus[i]->name, fast.seconds_per_byte);
    }
    finish(&first);
    start(&second, gpus);
    check_asked(&second, false);
    ck_assert_double_gt(second.step_time_s, 10 * first.step_time_s);
    start(&third, cpus); /* on the same hosts */
    check_asked(&third, false);
    ck_assert_double_lt(third.step_time_s, second.step_time_s / 10);
}
END_TEST

START_TEST(who_only_asks_is_told_of_the_network_as_it_is)
{
    struct run run;
    double before_s = asked_step_s();
    start(&run, gpus);
    ck_assert_double_eq_tol(before_s, run.step_time_s, 1e-9);
    tell_link(&run, true, &slow);
    ck_assert_double_gt(asked_step_s(), 10 * before_s);
    finish(&run);
    ck_assert_double_gt(asked_step_s(), 10 * before_s);
}
END_TEST

START_TEST(what_is_between_hosts_says_nothing_of_their_devices)
{
    struct run first, second, third;
    start(&first, gpus);
    start(&second, cpus);
    check_asked(&second, true);
    tell_link(&second, false, &slow);
    check_event(": between cpu-a and cpu-b ", "\"memory\":\"host\"");
    for (int i = 0; i < RANKS; i++) {
        check_network(cpus[i]->name, slow.seconds_per_byte);
        check_network(gpus[i]->name, within.seconds_per_byte);
    }
    finish(&first);
    start(&third, gpus);
    check_asked(&third, true);
    ck_assert_double_eq_tol(third.step_time_s, first.step_time_s, 1e-9);
}
END_TEST

START_TEST(a_worker_that_comes_back_is_measured_anew)
{
    struct run run;
    start(&run, gpus);
    tell_link(&run, false, &fast);
    tell_link(&run, true, &fast);
    finish(&run);
    party_leave(&cluster, gpus[1]);
    cluster_event(&cluster, user, "node-lost"); /* until then, another of its name is refused */
    gpus[1] = worker_on("gpu-b", "host-b", HARDWARE_GPU);
    check_network("gpu-b", within.seconds_per_byte);
    start(&run, gpus);
    check_asked(&run, true);
    finish(&run);
}
END_TEST

SUITE(network)
{
    TCase *tcase = tcase_create("network");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_devices_measure_is_asked_for_once_and_planned_for);
    tcase_add_test(tcase, who_only_asks_is_told_of_the_network_as_it_is);
    tcase_add_test(tcase, what_is_between_hosts_says_nothing_of_their_devices);
    tcase_add_test(tcase, a_worker_that_comes_back_is_measured_anew);
    return suite_run("network", tcase, NULL);
}
