/* test_survey.c - the links of devices, as a worker has them measured when it starts: by one more
 * executor, where there are several. The executors are real, their devices and NCCL are emulated.
 */
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/profile/profile.h"
#include "tests/support/suite.h"
#include "worker/node/survey.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST "GPU-00000000-0000-0000-0000-000000000000"
#define SECOND "GPU-00000000-0000-0000-0000-000000000001"
#define WARNING "jobs are planned as if data between devices went through the host's memory"

static char folder[64], executor[96], asked[96], log_path[96];
static struct hardware_report *report;

/* One that keeps what it is asked, a line each time. */
static void write_executor(void)
{
    FILE *file = fopen(executor, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\necho \"$*\" >>%s\nexec '%s' \"$@\"\n", asked, EXECUTOR);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(executor, 0755), 0);
}

/* A module finds in its own folder what it is linked to. */
static void link_modules(void)
{
    static const char *const modules[] = {MODULES "/gimbal-cuda.so", MODULES "/libemulated-cuda.so",
                                          MODULES "/nccl/gimbal-nccl.so"};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char *path = xasprintf("%s/%s", folder, strrchr(modules[i], '/') + 1);
        ck_assert_int_eq(symlink(modules[i], path), 0);
        free(path);
    }
}

static void setup(void)
{
    cpu_set_t mine;
    char cpuset[16];
    size_t core = 0;
    strcpy(folder, "/tmp/gimbal-probe-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(executor, sizeof executor, "%s/executor", folder);
    snprintf(asked, sizeof asked, "%s/asked", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    write_executor();
    link_modules();
    ck_assert_int_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    while (!CPU_ISSET(core, &mine))
        core++;
    snprintf(cpuset, sizeof cpuset, "%zu", core);
    report = hardware_report_create("node-a", "host", "processor", cpuset);
    setenv("GIMBAL_MODULES", folder, 1);
    setenv("EMULATED_DEVICES", "2", 1);
}

static void teardown(void)
{
    hardware_report_destroy(report);
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

static void add_device(const char *id)
{
    char *whole = xasprintf("cuda:%s", id), name[] = "emulated device";
    const struct hardware_device device = {
        .kind = HARDWARE_GPU, .name = name, .id = whole, .cpuset = report->cpuset, .cores = 1};
    hardware_report_add_device(report, &device);
    free(whole);
}

/* What is logged goes to a file. */
static void measure(void)
{
    const struct survey survey = {.shim = SHIM,
                                  .program = executor,
                                  .cpuset = report->cpuset,
                                  .crowd = 1,
                                  .devices = report->device_count,
                                  .stop_fd = -1};
    struct error err = {""};
    int own = dup(STDERR_FILENO), log = open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(dup2(log, STDERR_FILENO), STDERR_FILENO);
    int rc = survey_measure(&survey, report, &err);
    ck_assert_int_eq(dup2(own, STDERR_FILENO), STDERR_FILENO);
    close(own);
    close(log);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static struct profile profile_of(size_t index)
{
    struct profile profile;
    struct error err = {""};
    int rc = profile_decode(report->devices[index].profile, &profile, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return profile;
}

static bool are_equal(struct hardware_link a, struct hardware_link b)
{
    return a.latency_s == b.latency_s && a.seconds_per_byte == b.seconds_per_byte;
}

static bool has(const char *path, const char *words)
{
    char *text;
    struct error err = {""};
    ck_assert_msg(file_read(path, &text, &err) == 0, "%s", err.text);
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

/* Other hosts are reached as before. */
START_TEST(links_between_devices_of_a_host_are_measured)
{
    add_device(FIRST);
    add_device(SECOND);
    measure();
    ck_assert(has(asked, "--probe --links --device cuda:" FIRST "," SECOND " "));
    ck_assert(!has(log_path, WARNING));
    struct profile first = profile_of(0), second = profile_of(1);
    ck_assert_double_gt(first.host.latency_s, 0);
    ck_assert_double_gt(first.host.seconds_per_byte, 0);
    ck_assert(are_equal(first.host, second.host));
    ck_assert(!are_equal(first.host, first.network) && !are_equal(second.host, second.network));
    ck_assert_double_gt(first.network.seconds_per_byte, 0);
    ck_assert_double_gt(first.seconds_per_flop, 0);
}
END_TEST

static void check_as_through_the_host(size_t index)
{
    struct profile profile = profile_of(index);
    ck_assert(are_equal(profile.host, profile.network));
    ck_assert_double_gt(profile.host.seconds_per_byte, 0);
}

START_TEST(one_device_has_no_links)
{
    add_device(FIRST);
    measure();
    ck_assert(has(asked, "--probe") && !has(asked, "--links"));
    ck_assert(!has(log_path, WARNING));
    check_as_through_the_host(0);
}
END_TEST

START_TEST(without_their_library_data_goes_through_the_host)
{
    setenv("GIMBAL_MODULES", MODULES, 1);
    add_device(FIRST);
    add_device(SECOND);
    measure();
    ck_assert(has(log_path, WARNING));
    ck_assert(has(log_path, "links by nccl: its module cannot be loaded"));
    for (size_t i = 0; i < 2; i++)
        check_as_through_the_host(i);
}
END_TEST

SUITE(survey)
{
    log_open("worker", LOG_INFO);
    TCase *tcase = tcase_create("survey");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, links_between_devices_of_a_host_are_measured);
    tcase_add_test(tcase, one_device_has_no_links);
    tcase_add_test(tcase, without_their_library_data_goes_through_the_host);
    return suite_run("survey", tcase, NULL);
}
