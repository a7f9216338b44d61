/* test_devices.c - workers whose devices have memory of their own, in a cluster that is real but
 * for them: the module of CUDA's kernels is the emulated one. They are found, measured and planned
 * for, and a job trains on them as it does on cores, whatever happens to an executor. */
#include "common/base/memory.h"
#include "common/profile/profile.h"
#include "tests/cluster/limited.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 16
#define LOSS_LIMIT 1e-4 /* the order of sums, and another library's exponential */

static struct command events;

static void tear_down(void)
{
    pair_stop();
    limited_end();
}

/* One cluster for all tests: each runs in a process of its own, and leaves it as it was. */
static void setup(void)
{
    setenv("GIMBAL_MODULES", MODULES, 1);
    pair.devices = "cuda";
    pair.executors[1] = limited_begin("export EMULATED_MEMORY=");
    pair_start();
    command_start(&pair.command, (const char *const[]){GIMBAL, "events", "-w", NULL});
    ck_assert(command_await(&pair.command, "node-a joined"));
    ck_assert(command_await(&pair.command, "node-b joined"));
    kill(pair.command.pid, SIGINT);
    command_finish(&pair.command);
}

/* Replicas; shards of the state, with copies at the neighbour; pieces of tensors. */
static const char *const divisions[] = {
    "plan: {pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [1, 2, 3]}}\n",
    "plan: {pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [0]}}\n"
    "elastic: {copy_every: 1, copy_share: 0}\n",
    "plan: {pin: {tp: 2}}\nelastic: {copy_every: 1, copy_share: 0}\n"};
#define DIVISIONS ((int)(sizeof divisions / sizeof *divisions))

static void write_job(const char *division)
{
    FILE *file = fopen(pair.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {family: gpt, layers: 2, hidden: 16, heads: 2, seq: 8}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 4, lr: 0.003}\n"
            "devices: {min: 2, max: 2}\n"
            "eval: {every: %d, holdout: 0.02}\n"
            "%s",
            pair.folder, STEPS, STEPS, division);
    ck_assert_int_eq(fclose(file), 0);
}

/* Of the held-out text, as the job's events have it in the end. */
static double finish(void)
{
    ck_assert_msg(command_finish(&events) == 0, "%s%s", events.out, events.err);
    const char *at = strstr(events.out, "\"event\":\"evaluation\"");
    double loss = 0;
    at = at ? strstr(at, "\"loss\":") : NULL;
    ck_assert_msg(at && sscanf(at, "\"loss\":%lf", &loss) == 1, "%s", events.out);
    return loss;
}

/* Of the same job on this machine's cores. */
static double on_cores(void)
{
    ck_assert_msg(PAIR_GIMBAL("train", "--local", "2", "--checkpoint", "none", "-f", pair.job_path,
                              "-o", "json") == 0,
                  "%s", pair.command.err);
    json_t *result = json_loads(pair.command.out, 0, NULL);
    double loss = json_real_value(json_object_get(result, "heldout_loss"));
    json_decref(result);
    return loss;
}

static void check_close(double loss, double expected)
{
    ck_assert_msg(fabs(loss - expected) <= LOSS_LIMIT * expected, "the loss is %.7f, not %.7f",
                  loss, expected);
}

START_TEST(devices_are_found_and_measured)
{
    ck_assert_int_eq(PAIR_GIMBAL("nodes"), 0);
    ck_assert_msg(strstr(pair.command.out, "1 gpu of ") != NULL, "%s", pair.command.out);
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "-o", "json"), 0);
    json_t *node = pair_first_of("nodes");
    json_t *device = json_array_get(json_object_get(node, "devices"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(device, "kind")), "gpu");
    ck_assert_str_eq(json_string_value(json_object_get(device, "name")), "emulated device");
    ck_assert_str_eq(json_string_value(json_object_get(device, "id")),
                     "cuda:GPU-00000000-0000-0000-0000-000000000000");
    ck_assert_str_eq(json_string_value(json_object_get(device, "place")), "0000:10:00.0");
    static const char *const rates[] = {"flops", "bandwidth", "upload", "download"};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        ck_assert_double_gt(json_number_value(json_object_get(device, rates[i])), 0);
    static struct profile profile;
    ck_assert_int_eq(
        profile_decode(json_string_value(json_object_get(device, "profile")), &profile, NULL), 0);
    ck_assert_double_gt(profile.seconds_per_flop, 0);
    ck_assert_double_gt(profile.seconds_per_flop_bf16, 0);
    json_int_t memory = json_integer_value(json_object_get(device, "memory_bytes")),
               libraries = json_integer_value(json_object_get(device, "library_bytes"));
    ck_assert_int_gt(libraries, 1 << 20);
    ck_assert_int_gt(memory, libraries + (1 << 20));
    json_decref(node);
}
END_TEST

START_TEST(a_job_trains_on_devices_as_on_cores)
{
    write_job(divisions[_i]);
    pair_submit(&events);
    double loss = finish();
    check_close(loss, on_cores());
}
END_TEST

/* What the device held is gone with the process; the other one has it, or a copy of it. */
START_TEST(a_killed_executor_changes_no_loss)
{
    write_job(divisions[_i]);
    pair_submit(&events);
    ck_assert_msg(command_await(&events, "\"event\":\"step\""), "%s", events.out);
    ck_assert_int_eq(kill(command_child(pair.workers[1].pid), SIGKILL), 0);
    ck_assert_msg(command_await(&events, "\"event\":\"job-replanned\""), "%s", events.out);
    ck_assert_msg(command_await(&events, "first step"), "half an event");
    char *replan = strstr(events.out, "\"event\":\"job-replanned\"");
    ck_assert_msg(strstr(replan, "from memory") != NULL, "%s", replan);
    double loss = finish();
    check_close(loss, on_cores());
}
END_TEST

/* By another process, since it was measured. Its libraries leave no room for a plan with less. */
START_TEST(a_device_that_is_full_is_no_fault_of_the_job)
{
    limited_set(4096);
    write_job(divisions[0]);
    pair_submit(&events);
    pair_await(&events, " on node-b/0 ran out of memory");
    pair_await(&events, ", and is planned with at most ");
    pair_await(&events, " of the device's memory were asked for; 4.0 KiB of 4.0 KiB are free");
    ck_assert_int_ne(command_finish(&events), 0);
    ck_assert_msg(strstr(events.out, " on node-b/0, ") != NULL &&
                      strstr(events.out, "(a rank of the job ran out of memory there)") != NULL,
                  "%s", command_last(&events));
}
END_TEST

START_TEST(a_training_without_a_cluster_takes_the_device_too)
{
    static const char *const names[] = {"cuda", "cuda:GPU-00000000-0000-0000-0000-000000000000"};
    write_job("");
    double loss = on_cores();
    ck_assert_msg(PAIR_GIMBAL("train", "--local", "2", "--checkpoint", "none", "--device",
                              names[_i], "-f", pair.job_path, "-o", "json") == 0,
                  "%s", pair.command.err);
    json_t *result = json_loads(pair.command.out, 0, NULL);
    check_close(json_real_value(json_object_get(result, "heldout_loss")), loss);
    json_decref(result);
}
END_TEST

/* Asks for a device that is not there. */
static void check_refused(const char *modules, const char *device, const char *words)
{
    setenv("GIMBAL_MODULES", modules, 1);
    write_job("");
    ck_assert_int_eq(PAIR_GIMBAL("train", "--local", "2", "--checkpoint", "none", "--device",
                                 device, "-f", pair.job_path),
                     65); /* docs/jobs.md: a name that is wrong */
    ck_assert_msg(strstr(pair.command.err, words) != NULL, "%s", pair.command.err);
}

START_TEST(a_device_that_is_not_there_is_refused_in_words)
{
    check_refused("/proc/nowhere", "cuda",
                  "device 'cuda': its module cannot be loaded: "
                  "/proc/nowhere/gimbal-cuda.so");
    check_refused(MODULES, "cuda:GPU-9", "there is no NVIDIA device, or CUDA_VISIBLE_DEVICES");
    check_refused(MODULES, "cpu:1", "there is one 'cpu' on a machine; write 'cpu'");
    check_refused(MODULES, "abacus", "there is no device 'abacus'; there are: ");
}
END_TEST

START_TEST(a_worker_that_is_to_have_devices_says_why_it_has_none)
{
    char state[96];
    snprintf(state, sizeof state, "%s/worker", pair.folder);
    setenv("GIMBAL_MODULES", "/proc/nowhere", 1);
    ck_assert_int_eq(
        pair_gimbal((const char *const[]){WORKER, "--name", "node-c", "--devices", "cuda",
                                          "--state", state, "--executor", EXECUTOR, NULL}),
        69);
    ck_assert_msg(strstr(pair.command.err, "devices: there is no 'cuda' here: ") != NULL, "%s",
                  pair.command.err);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("devices");
    tcase_add_unchecked_fixture(tcase, setup, tear_down); /* measuring takes its time */
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, devices_are_found_and_measured);
    tcase_add_loop_test(tcase, a_job_trains_on_devices_as_on_cores, 0, DIVISIONS);
    tcase_add_loop_test(tcase, a_killed_executor_changes_no_loss, 0, DIVISIONS);
    tcase_add_test(tcase, a_device_that_is_full_is_no_fault_of_the_job);
    tcase_add_loop_test(tcase, a_training_without_a_cluster_takes_the_device_too, 0, 2);
    tcase_add_test(tcase, a_device_that_is_not_there_is_refused_in_words);
    tcase_add_test(tcase, a_worker_that_is_to_have_devices_says_why_it_has_none);
    return suite_run("devices", tcase, NULL);
}
