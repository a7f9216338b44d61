/* test_doctor.c - `gimbal doctor`: on this machine, and of a cluster whose nodes are the test's. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/profile/profile.h"
#include "coordinator/cli/authority.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static struct command command;
static struct cluster cluster;
static char state[32], core[8];
static json_t *answer;

/* With more words before what a worker is told, of a machine like this one that is fit: one of its
 * cores, and little of its memory. The exit status; the answer is in JSON. */
static int examine(const char *const *more)
{
    const char *words[32] = {GIMBAL, "doctor", "-o", "json", "--address", cluster.address};
    const char *const worker[] = {"--",          "--name",   "node-x",  "--devices", "1",
                                  "--memory",    "64MiB",    "--state", state,       "--executor",
                                  FAKE_EXECUTOR, "--cpuset", core};
    size_t count = 6;
    for (; *more; more++)
        words[count++] = *more;
    for (size_t i = 0; i < sizeof worker / sizeof *worker; i++)
        words[count++] = worker[i];
    command_start(&command, words);
    int status = command_finish(&command);
    json_decref(answer);
    answer = json_loads(command.out, 0, NULL);
    ck_assert_msg(answer != NULL, "%s", command_last(&command));
    return status;
}

/* Does a finding of the check have this verdict, and these words? */
static bool has(const char *check, const char *verdict, const char *words)
{
    size_t index;
    json_t *each;
    json_array_foreach(json_object_get(answer, "findings"), index, each)
    {
        if (strcmp(json_string_value(json_object_get(each, "check")), check) == 0 &&
            strcmp(json_string_value(json_object_get(each, "verdict")), verdict) == 0 &&
            strstr(json_string_value(json_object_get(each, "found")), words))
            return true;
    }
    return false;
}

#define FINDS(check, verdict, words)                                                               \
    ck_assert_msg(has(check, verdict, words), "%s is not %s: '%s' in\n%s", check, verdict, words,  \
                  command.out)

static void set_up(void)
{
    cpu_set_t mine;
    size_t first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    while (!CPU_ISSET(first, &mine))
        first++;
    snprintf(core, sizeof core, "%zu", first);
    strcpy(state, "/tmp/gimbal-doctor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(state));
    /* Where there is nothing to complain of; nobody saves there. */
    cluster_start(&cluster, (const char *const[]){"--checkpoints", state, NULL});
}

/* The doctor has left nothing in the folder. */
static void tear_down(void)
{
    json_decref(answer);
    answer = NULL;
    ck_assert_int_eq(rmdir(state), 0);
    if (cluster.coordinator)
        cluster_stop(&cluster);
}

static const char *const nothing[] = {NULL};

START_TEST(a_machine_that_is_fit_is_called_so)
{
    int status = examine(nothing);
    ck_assert_msg(status == 0, "%d: %s", status, command_last(&command));
    ck_assert_str_eq(json_string_value(json_object_get(answer, "apiVersion")), "gimbal/v1");
    ck_assert_str_eq(json_string_value(json_object_get(answer, "kind")), "Doctor");
    ck_assert_str_eq(json_string_value(json_object_get(answer, "verdict")), "ok");
    ck_assert_str_eq(json_string_value(json_object_get(answer, "node")), "node-x");
    FINDS("system", "ok", "Linux ");
    FINDS("devices", "ok", "1 device, ");
    FINDS("coordinator", "ok", ", release " GIMBAL_RELEASE ", answers in ");
    FINDS("cluster", "ok", " answers; of 0 nodes 0 are alive");
    FINDS("cluster", "ok", "node 'node-x' is not in the cluster yet");
    ck_assert_ptr_null(json_object_get(answer, "links"));
}
END_TEST

START_TEST(a_shell_that_keeps_something_back_is_a_warning)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 100;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(examine(nothing), 4);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "verdict")), "warning");
    FINDS("limits", "warning", "100 open files at most: a rank can be connected to 12 others");
}
END_TEST

START_TEST(a_coordinator_that_does_not_answer_blocks)
{
    cluster_kill(&cluster);
    ck_assert_int_eq(examine(nothing), 5);
    FINDS("coordinator", "blocking", "nobody listens at tcp://127.0.0.1:");
    FINDS("cluster", "blocking", "no coordinator answers at tcp://127.0.0.1:");
    cluster_restart(&cluster, NULL);
}
END_TEST

START_TEST(settings_that_are_wrong_block_and_are_told)
{
    char path[64];
    snprintf(path, sizeof path, "%s.json", state);
    command_start(&command, (const char *const[]){GIMBAL, "doctor", "-o", path, "--", "--devices",
                                                  "0", NULL});
    ck_assert_int_eq(command_finish(&command), 5);
    char *text;
    ck_assert_int_eq(file_read(path, &text, NULL), 0);
    ck_assert_ptr_nonnull(strstr(text, "write 1 to 64, to divide the cores into that many"));
    free(text);
    unlink(path);
    command_start(&command, (const char *const[]){GIMBAL, "doctor", "--", "--speed", NULL});
    ck_assert_int_eq(command_finish(&command), 5);
    ck_assert_ptr_nonnull(strstr(command.out, "settings   blocking  unknown flag --speed"));
    ck_assert_ptr_nonnull(strstr(command.out, ". What would be right: valid settings"));
    command_start(&command, (const char *const[]){GIMBAL, "doctor", "--", "-xh", NULL});
    ck_assert_int_eq(command_finish(&command), 5);
    ck_assert_msg(strstr(command.out, "unknown flag -x in '-xh'") != NULL, "%s", command.out);
}
END_TEST

/* They are a user's, and the worker's own file says what the worker has. */
START_TEST(certificates_of_a_user_are_not_the_workers)
{
    char certificates[64], folder[80];
    snprintf(certificates, sizeof certificates, "%s.certs", state);
    const struct authority_options options = {.directory = certificates,
                                              .hosts = (const char *const[]){"localhost", NULL},
                                              .days = 365,
                                              .now_s = time(NULL)};
    ck_assert_int_eq(authority_create(&options, NULL), 0);
    snprintf(folder, sizeof folder, "%s/user", certificates);
    setenv("GIMBAL_TLS", folder, 1);
    ck_assert_int_eq(examine(nothing), 5);
    FINDS("certificates", "ok", "none are needed");
    FINDS("cluster", "blocking", "/user/credential: first join with");
    snprintf(folder, sizeof folder, "%s/worker", certificates);
    setenv("GIMBAL_TLS", folder, 1);
    ck_assert_int_eq(examine(nothing), 5);
    FINDS("settings", "blocking", "coordinator: ");
    command_start(&command, (const char *const[]){"/bin/rm", "-r", certificates, NULL});
    ck_assert_int_eq(command_finish(&command), 0);
}
END_TEST

START_TEST(what_a_job_names_has_to_be_here)
{
    static const char job[] = "apiVersion: gimbal/v1\n"
                              "name: small\n"
                              "model: {family: gpt, layers: 2, hidden: 32, heads: 2, seq: 32}\n"
                              "data: {text: [%s, /proc/nowhere/text]}\n"
                              "train: {steps: 2, global_batch: 8, lr: 3.0e-3}\n"
                              "checkpoint: {dir: %s, every: 1}\n";
    char path[64], text[1024];
    snprintf(path, sizeof path, "%s.yaml", state);
    snprintf(text, sizeof text, job, path,
             "/proc"); /* NOLINT(clang-diagnostic-format-nonliteral) */
    ck_assert_int_eq(file_write(path, text, 0600, NULL), 0);
    ck_assert_int_eq(examine((const char *const[]){"-f", path, NULL}), 5);
    FINDS("job", "ok", ".yaml is here");
    FINDS("job", "blocking", "data.text: /proc/nowhere/text: No such file or directory");
    FINDS("job", "blocking", "checkpoint.dir: write '/proc/doctor-");
    snprintf(text, sizeof text, job, path, state); /* NOLINT(clang-diagnostic-format-nonliteral) */
    ck_assert_int_eq(file_write(path, text, 0600, NULL), 0);
    ck_assert_int_eq(examine((const char *const[]){"-f", path, NULL}), 5);
    FINDS("job", "ok", " can be written, and has room for ");
    unlink(path);
}
END_TEST

/* One file by its name, a dataset of Megatron-LM's by what its files begin with. */
START_TEST(tokens_that_a_job_names_have_to_be_here)
{
    char path[64], index[64], tokens[64], text[1024], words[96];
    snprintf(path, sizeof path, "%s.yaml", state);
    snprintf(index, sizeof index, "%s_text.idx", state);
    snprintf(tokens, sizeof tokens, "%s_text.bin", state);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: small\n"
             "model: {family: gpt, layers: 2, hidden: 32, heads: 2, seq: 32, vocab: 9}\n"
             "data: {tokens: ['%s_text', /proc/nowhere/t.bin]}\n"
             "train: {steps: 2, global_batch: 8, lr: 3.0e-3}\n",
             state);
    ck_assert_int_eq(file_write(path, text, 0600, NULL), 0);
    ck_assert_int_eq(file_write(index, "", 0600, NULL), 0);
    ck_assert_int_eq(examine((const char *const[]){"-f", path, NULL}), 5);
    snprintf(words, sizeof words, "data.tokens: %s is here", index);
    FINDS("job", "ok", words);
    snprintf(words, sizeof words, "data.tokens: %s: No such file or directory", tokens);
    FINDS("job", "blocking", words);
    FINDS("job", "blocking", "data.tokens: /proc/nowhere/t.bin: No such file or directory");
    unlink(index);
    unlink(path);
}
END_TEST

/* A node whose devices reach each other at so many bytes per second. */
static void add_node(const char *name, const char *host, const char *cpuset,
                     const struct hardware_device *device, double bytes_per_s)
{
    const struct hardware_link link = {1e-5, 1 / bytes_per_s};
    struct profile profile = profile_analytic(1e11, 1e10, 1, link, link);
    struct hardware_device measured = *device;
    struct hardware_report *report = hardware_report_create(name, host, "EPYC", cpuset);
    measured.profile = profile_encode(&profile);
    hardware_set_text(&report->address, "127.0.0.1");
    hardware_set_text(&report->release, GIMBAL_RELEASE);
    report->cores = 4;
    report->memory_bytes = MIB;
    report->measured_unix_ms = 1700000000000;
    hardware_report_add_device(report, &measured);
    cluster_worker_with(&cluster, report)->name = name;
    hardware_report_destroy(report);
    free(measured.profile);
}

static const struct hardware_device cpu = {
    .kind = HARDWARE_CPU, .name = "EPYC", .cpuset = "0-3", .cores = 4, .memory_bytes = MIB};

START_TEST(links_are_those_that_nodes_have_measured)
{
    const char *const pairs[] = {"--pairs", NULL};
    add_node("node-a", "boot-1", "0-3", &cpu, 8e9);
    add_node("node-b", "boot-2", "0-3", &cpu, 8e9);
    ck_assert_int_eq(examine(pairs), 0);
    FINDS("links", "ok", "2 links within nodes of EPYC, none much slower than the others");
    FINDS("links", "ok", "2 links between nodes, none much slower than the others");
    FINDS("links", "ok", "is measured by the first job on it and another");
    add_node("node-c", "boot-3", "0-3", &cpu, 2e9);
    ck_assert_int_eq(examine(pairs), 4);
    FINDS("links", "warning",
          "1.9 GiB/s between the devices of node-c, while half of such links have "
          "7.5 GiB/s or more");
    const json_t *links = json_object_get(answer, "links"), *slow = json_array_get(links, 2);
    ck_assert_uint_eq(json_array_size(links), 6);
    ck_assert_str_eq(json_string_value(json_object_get(slow, "level")), "within");
    ck_assert_str_eq(json_string_value(json_object_get(slow, "from")), "node-c");
    ck_assert_double_eq_tol(json_number_value(json_object_get(slow, "bandwidth")), 2e9, 1);
    ck_assert_double_eq_tol(json_number_value(json_object_get(slow, "median_bandwidth")), 8e9, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(slow, "measured_unix_ms")), 1700000000000);
    const json_t *way = json_array_get(links, 3);
    ck_assert_str_eq(json_string_value(json_object_get(way, "level")), "between");
    ck_assert_str_eq(json_string_value(json_object_get(way, "from")), "node-x");
    ck_assert_str_eq(json_string_value(json_object_get(way, "to")), "node-a");
    ck_assert(json_is_null(json_object_get(way, "bandwidth")));
}
END_TEST

START_TEST(a_neighbour_on_the_same_cores_is_told)
{
    char *boot;
    ck_assert_int_eq(file_read("/proc/sys/kernel/random/boot_id", &boot, NULL), 0);
    boot[strcspn(boot, "\n")] = '\0';
    add_node("node-a", boot, "10000-10001", &cpu, 8e9);
    ck_assert_int_eq(examine(nothing), 0);
    FINDS("neighbours", "ok", "1 other node is on this machine, with cores of their own");
    add_node("node-b", boot, core, &cpu, 8e9);
    ck_assert_int_eq(examine(nothing), 4);
    FINDS("neighbours", "warning", "node 'node-b' on this machine offers cores ");
    ck_assert(!has("neighbours", "warning", "node-a"));
    free(boot);
}
END_TEST

START_TEST(a_device_of_which_others_have_a_part_is_told)
{
    struct hardware_device gpu = {.kind = HARDWARE_GPU,
                                  .name = "H100",
                                  .id = "cuda:GPU-1",
                                  .cpuset = "0-3",
                                  .cores = 4,
                                  .memory_bytes = 80 * MIB};
    add_node("node-a", "boot-1", "0-3", &gpu, 8e9);
    gpu.memory_bytes = 40 * MIB;
    add_node("node-b", "boot-2", "0-3", &gpu, 8e9);
    ck_assert_int_eq(examine(nothing), 4);
    FINDS("held", "warning",
          "node-b/0, H100, offers 40.0 MiB, while others of its model offer 80.0 MiB");
    ck_assert(!has("held", "warning", "node-a/0"));
}
END_TEST

SUITE(doctor)
{
    TCase *tcase = tcase_create("doctor");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_machine_that_is_fit_is_called_so);
    tcase_add_test(tcase, a_shell_that_keeps_something_back_is_a_warning);
    tcase_add_test(tcase, a_coordinator_that_does_not_answer_blocks);
    tcase_add_test(tcase, settings_that_are_wrong_block_and_are_told);
    tcase_add_test(tcase, certificates_of_a_user_are_not_the_workers);
    tcase_add_test(tcase, what_a_job_names_has_to_be_here);
    tcase_add_test(tcase, tokens_that_a_job_names_have_to_be_here);
    tcase_add_test(tcase, links_are_those_that_nodes_have_measured);
    tcase_add_test(tcase, a_neighbour_on_the_same_cores_is_told);
    tcase_add_test(tcase, a_device_of_which_others_have_a_part_is_told);
    return suite_run("doctor", tcase, NULL);
}
