/* test_planned.c - what gimbal says of the plan of a job: it looks at the devices that the plan
 * names, as the coordinator does. The workers are clients of the test. */
#include "tests/cluster/command.h"
#include "tests/cluster/small_job.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "common/profile/profile.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cluster cluster;
static struct party *user;
static struct command command;
static char path[128];

static int run_gimbal(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}
#define RUN(...)                                                                                   \
    run_gimbal((const char *const[]){GIMBAL, __VA_ARGS__, "--address", cluster.address, NULL})

/* A node with a GPU of this speed. */
static struct party *gpu_on(const char *node, double flops)
{
    const struct hardware_link link = {1e-5, 1e-10};
    const struct profile profile = profile_analytic(flops, 1e11, 1, link, link);
    char *text = profile_encode(&profile), name[] = "H200", cores[] = "0-3";
    const struct hardware_device device = {.kind = HARDWARE_GPU,
                                           .name = name,
                                           .cpuset = cores,
                                           .cores = 4,
                                           .memory_bytes = GIB,
                                           .flops = flops,
                                           .bandwidth = 1e11,
                                           .profile = text};
    struct hardware_report *report = hardware_report_create(node, node, "EPYC", "0-3");
    hardware_set_text(&report->address, "127.0.0.1");
    report->cores = 4;
    report->memory_bytes = GIB;
    hardware_report_add_device(report, &device);
    struct party *party = cluster_worker_with(&cluster, report);
    party->name = node;
    hardware_report_destroy(report);
    free(text);
    return party;
}

static void set_up(void)
{
    cluster_start(&cluster, patient);
    user = cluster_user(&cluster);
    snprintf(path, sizeof path, "%s/step.json", cluster.directory);
}

static void tear_down(void)
{
    remove(path);
    cluster_stop(&cluster);
}

/* When the last instruction of the written step ends. */
static double written_step_s(void)
{
    json_t *root = json_load_file(path, 0, NULL), *event;
    size_t i;
    double end_us = 0;
    ck_assert_ptr_nonnull(root);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        double begin_us = json_number_value(json_object_get(event, "ts"));
        double took_us = json_number_value(json_object_get(event, "dur"));
        end_us = begin_us + took_us > end_us ? begin_us + took_us : end_us;
    }
    json_decref(root);
    return end_us * 1e-6;
}

/* Two devices of one model, measured with the usual difference, are planned as equally fast. */
START_TEST(every_verb_has_the_step_that_was_predicted)
{
    char step[32];
    struct party *workers[] = {gpu_on("node-a", 1e12), gpu_on("node-b", 1.06e12)};
    Gimbal__SubmitReply *reply = submit(user, small, "devices: {min: 2, max: 2}\n");
    for (int i = 0; i < 2; i++)
        await_assignment(&cluster, workers[i]);
    Gimbal__GetJobReply *job = get_job(user, reply->job);
    double predicted_s = job->status->predicted_step_time_s;
    ck_assert_msg(RUN("plan", "trace", reply->job, "-o", path) == 0, "%s", command.err);
    ck_assert_double_eq_tol(written_step_s() / predicted_s, 1, 1e-6);
    ck_assert_msg(RUN("plan", "explain", reply->job) == 0, "%s", command.err);
    units_print_seconds(step, sizeof step, predicted_s);
    ck_assert_msg(strstr(command.out, step) != NULL, "%s: %s", step, command.out);
    message_free(&job->base);
    message_free(&reply->base);
}
END_TEST

/* The job could have had another device, but it has this one. */
START_TEST(a_plan_is_explained_on_the_devices_that_it_names)
{
    gpu_on("node-a", 1e12);
    struct party *fast = gpu_on("node-b", 4e12);
    Gimbal__SubmitReply *reply = submit(user, small, "devices: {min: 1, max: 1}\n");
    await_assignment(&cluster, fast);
    ck_assert_msg(RUN("plan", "explain", reply->job) == 0, "%s", command.err);
    message_free(&reply->base);
}
END_TEST

SUITE(planned)
{
    TCase *tcase = tcase_create("planned");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_verb_has_the_step_that_was_predicted);
    tcase_add_test(tcase, a_plan_is_explained_on_the_devices_that_it_names);
    return suite_run("planned", tcase, NULL);
}
