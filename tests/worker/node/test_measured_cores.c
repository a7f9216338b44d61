/* test_measured_cores.c - cores as a worker has them measured when it starts, or as they were
 * before. */
#include "common/base/clock.h"
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
#include <unistd.h>

#define KEPT "the cores are as they were measured on "

static char folder[64], kept[96], log_path[96], cpuset[16], *said;

static void setup(void)
{
    cpu_set_t mine;
    size_t core = 0;
    strcpy(folder, "/tmp/gimbal-cores-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(kept, sizeof kept, "%s/profiles", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    ck_assert_int_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    while (!CPU_ISSET(core, &mine))
        core++;
    snprintf(cpuset, sizeof cpuset, "%zu", core);
}

static void teardown(void)
{
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
    free(said);
    said = NULL;
}

/* One core, as this survey has them measured; what it logs is in `said`. */
static struct hardware_report *measure(const struct survey *survey)
{
    char name[] = "cores";
    const struct hardware_device device = {
        .kind = HARDWARE_CPU, .name = name, .cpuset = cpuset, .cores = 1, .memory_bytes = 1 << 30};
    struct hardware_report *report = hardware_report_create("node-a", "host", "processor", cpuset);
    struct error err = {""};
    hardware_report_add_device(report, &device);
    int own = dup(STDERR_FILENO),
        log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(dup2(log, STDERR_FILENO), STDERR_FILENO);
    int rc = survey_measure(survey, report, &err);
    ck_assert_int_eq(dup2(own, STDERR_FILENO), STDERR_FILENO);
    close(own);
    close(log);
    ck_assert_msg(rc == 0, "%s", err.text);
    free(said);
    ck_assert_int_eq(file_read(log_path, &said, &err), 0);
    return report;
}

static struct survey survey_of(const char *where)
{
    return (struct survey){.shim = SHIM,
                           .program = EXECUTOR,
                           .cpuset = cpuset,
                           .crowd = 1,
                           .devices = 1,
                           .cache = where,
                           .stop_fd = -1};
}

static void check_same(const struct hardware_report *a, const struct hardware_report *b)
{
    ck_assert_uint_eq(a->measured_unix_ms, b->measured_unix_ms);
    ck_assert_str_eq(a->devices[0].profile, b->devices[0].profile);
}

START_TEST(a_worker_that_starts_again_has_its_cores_as_they_were_measured)
{
    struct profile profile;
    struct survey survey = survey_of(kept);
    uint64_t begin_ms = clock_unix_ms();
    struct hardware_report *first = measure(&survey);
    ck_assert_msg(strstr(said, KEPT) == NULL, "%s", said);
    ck_assert_uint_ge(first->measured_unix_ms, begin_ms);
    ck_assert_uint_le(first->measured_unix_ms, clock_unix_ms());
    ck_assert_int_eq(profile_decode(first->devices[0].profile, &profile, NULL), 0);
    struct hardware_report *second = measure(&survey);
    ck_assert_msg(strstr(said, KEPT) != NULL, "%s", said);
    check_same(first, second);
    survey.measure = true;
    struct hardware_report *third = measure(&survey);
    ck_assert_msg(strstr(said, KEPT) == NULL, "%s", said);
    ck_assert_uint_gt(third->measured_unix_ms, second->measured_unix_ms);
    survey.measure = false;
    struct hardware_report *fourth = measure(&survey);
    check_same(third, fourth);
    struct hardware_report *reports[] = {first, second, third, fourth};
    for (int i = 0; i < 4; i++)
        hardware_report_destroy(reports[i]);
}
END_TEST

START_TEST(a_worker_that_can_keep_nothing_measures_and_says_so)
{
    struct error err;
    ck_assert_int_eq(file_write(kept, "a file in the folder's place", 0600, &err), 0);
    struct survey survey = survey_of(kept);
    struct hardware_report *report = measure(&survey);
    ck_assert_msg(strstr(said, "what was measured is not kept: ") && strstr(said, kept), "%s",
                  said);
    ck_assert_ptr_nonnull(report->devices[0].profile);
    hardware_report_destroy(report);
}
END_TEST

SUITE(measured_cores)
{
    log_open("worker", LOG_INFO);
    TCase *tcase = tcase_create("measured cores");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_worker_that_starts_again_has_its_cores_as_they_were_measured);
    tcase_add_test(tcase, a_worker_that_can_keep_nothing_measures_and_says_so);
    return suite_run("measured cores", tcase, NULL);
}
