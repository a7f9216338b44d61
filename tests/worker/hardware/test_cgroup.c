/* test_cgroup.c - memory limits, and how often the kernel has killed for memory, read from a
 * directory that looks like the kernel's. */
#include "worker/hardware/cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/suite.h"

static char root[32];
static struct error err;

/* Write a file under root. */
static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
    char path[256];
    snprintf(root, sizeof root, "/tmp/gimbal-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(path, sizeof path, "%s/outer", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/outer/inner", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    static const char *const controllers[] = {"memory", "cpu", "pids"};
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        snprintf(path, sizeof path, "%s/%s", root, controllers[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/%s/old", root, controllers[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    put("self", "1:name=systemd:/other\n0::/outer/inner\n");
}

static void teardown(void)
{
    static const char *const names[] = {"outer/inner/memory.max",
                                        "outer/memory.max",
                                        "memory.max",
                                        "outer/inner/memory.events",
                                        "outer/memory.events",
                                        "memory/old/memory.limit_in_bytes",
                                        "memory/memory.limit_in_bytes",
                                        "memory/old/memory.oom_control",
                                        "memory/memory.oom_control",
                                        "outer/inner/cpu.max",
                                        "outer/cpu.max",
                                        "outer/inner/pids.max",
                                        "outer/pids.max",
                                        "outer/inner/pids.current",
                                        "outer/pids.current",
                                        "cpu/old/cpu.cfs_quota_us",
                                        "cpu/old/cpu.cfs_period_us",
                                        "pids/old/pids.max",
                                        "pids/old/pids.current",
                                        "vmstat",
                                        "self"};
    static const char *const folders[] = {"outer/inner", "outer", "memory/old", "memory",
                                          "cpu/old",     "cpu",   "pids/old",   "pids"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        rmdir(path);
    }
    ck_assert_int_eq(rmdir(root), 0);
}

static int limit(uint64_t *bytes)
{
    char self[256];
    snprintf(self, sizeof self, "%s/self", root);
    return cgroup_memory_limit(root, self, bytes, &err);
}

START_TEST(without_limits_there_is_none)
{
    uint64_t bytes = 0;
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, UINT64_MAX);
    put("outer/inner/memory.max", "max\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, UINT64_MAX);
}
END_TEST

START_TEST(the_tightest_of_the_groups_around_holds)
{
    uint64_t bytes = 0;
    put("outer/inner/memory.max", "4096000\n");
    put("outer/memory.max", "1024000\n");
    put("memory.max", "max\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, 1024000);
    put("memory.max", "512000\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, 512000);
}
END_TEST

START_TEST(limits_of_version_1_hold_as_well)
{
    uint64_t bytes = 0;
    put("self", "4:cpu,memory:/old/one\n0::/outer\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, 9223372036854771712u);
    put("memory/old/memory.limit_in_bytes", "2048000\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, 2048000);
    put("outer/memory.max", "1024000\n");
    ck_assert_int_eq(limit(&bytes), 0);
    ck_assert_uint_eq(bytes, 1024000);
}
END_TEST

START_TEST(a_limit_that_is_not_understood_is_named)
{
    char words[512];
    uint64_t bytes = 7;
    put("outer/memory.max", "plenty\n");
    ck_assert_int_eq(limit(&bytes), -EINVAL);
    snprintf(words, sizeof words,
             "%s/outer/memory.max says 'plenty', which is neither a number of bytes nor 'max'",
             root);
    ck_assert_str_eq(err.text, words);
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

static void share_is(double processors, uint64_t threads)
{
    char self[256];
    double time = 0;
    uint64_t room = 0;
    snprintf(self, sizeof self, "%s/self", root);
    ck_assert_msg(cgroup_processors(root, self, &time, &err) == 0, "%s", err.text);
    ck_assert_msg(cgroup_threads(root, self, &room, &err) == 0, "%s", err.text);
    ck_assert(time == processors);
    ck_assert_uint_eq(room, threads);
}

START_TEST(the_least_share_of_time_and_threads_holds)
{
    share_is(INFINITY, UINT64_MAX);
    put("outer/inner/memory.max", "max\n");
    put("outer/inner/cpu.max", "max 100000\n");
    put("outer/inner/pids.max", "50\n");
    put("outer/inner/pids.current", "8\n");
    share_is(INFINITY, 42);
    put("outer/cpu.max", "50000 100000\n");
    put("outer/pids.max", "20\n");
    put("outer/pids.current", "30\n");
    share_is(0.5, 0);
}
END_TEST

START_TEST(shares_of_version_1_hold_as_well)
{
    put("self", "4:cpu,cpuacct:/old\n5:pids:/old\n");
    put("cpu/old/cpu.cfs_quota_us", "-1\n");
    put("cpu/old/cpu.cfs_period_us", "100000\n");
    put("pids/old/pids.max", "max\n");
    share_is(INFINITY, UINT64_MAX);
    put("cpu/old/cpu.cfs_quota_us", "250000\n");
    put("pids/old/pids.max", "9\n");
    put("pids/old/pids.current", "2\n");
    share_is(2.5, 7);
}
END_TEST

static const char events[] = "low 0\nhigh 4\nmax 17\noom 9\noom_kill %d\noom_group_kill 8\n";
static const char control[] = "oom_kill_disable 1\nunder_oom 0\noom_kill %d\n";

static void put_count(const char *name, const char *format, int count)
{
    char text[128];
    snprintf(text, sizeof text, format, count); /* NOLINT(clang-diagnostic-format-nonliteral) */
    put(name, text);
}

static void kills_are(uint64_t count, const char *where)
{
    char self[256], vmstat[256];
    struct cgroup_kills kills = {77, "untouched"};
    snprintf(self, sizeof self, "%s/self", root);
    snprintf(vmstat, sizeof vmstat, "%s/vmstat", root);
    bool said = cgroup_kills(root, self, vmstat, &kills);
    ck_assert_uint_eq(said, strcmp(where, "untouched") != 0);
    ck_assert_uint_eq(kills.count, count);
    ck_assert_str_eq(kills.where, where);
}

START_TEST(the_nearest_group_that_counts_kills_is_asked)
{
    kills_are(77, "untouched");
    put("vmstat", "oom 5\noom_kill 12\n");
    kills_are(12, "vmstat");
    put_count("outer/memory.events", events, 4); /* has those of the inner one in it */
    kills_are(4, "memory.events");
    put_count("outer/inner/memory.events", events, 3);
    kills_are(3, "memory.events");
    put_count("outer/inner/memory.events", events, 5);
    kills_are(5, "memory.events");
}
END_TEST

START_TEST(groups_of_version_1_count_kills_as_well)
{
    put("self", "9:name=systemd:/\n4:cpu,memory:/old/one\n3:memory_other:/outer\n0::/\n");
    put_count("memory/memory.oom_control", control, 6);
    kills_are(6, "memory.oom_control");
    put_count("memory/old/memory.oom_control", control, 2);
    kills_are(2, "memory.oom_control");
    put("vmstat", "oom_kill 12\n");
    kills_are(2, "memory.oom_control");
}
END_TEST

START_TEST(what_says_no_number_is_passed_over)
{
    put("outer/inner/memory.events", "oom_kill \noom_kills 3\nx oom_kill 4\n");
    put("vmstat", "oom_kill 12\n");
    kills_are(12, "vmstat");
}
END_TEST

SUITE(cgroup)
{
    TCase *tcase = tcase_create("cgroup");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, without_limits_there_is_none);
    tcase_add_test(tcase, the_tightest_of_the_groups_around_holds);
    tcase_add_test(tcase, limits_of_version_1_hold_as_well);
    tcase_add_test(tcase, a_limit_that_is_not_understood_is_named);
    tcase_add_test(tcase, the_least_share_of_time_and_threads_holds);
    tcase_add_test(tcase, shares_of_version_1_hold_as_well);
    tcase_add_test(tcase, the_nearest_group_that_counts_kills_is_asked);
    tcase_add_test(tcase, groups_of_version_1_count_kills_as_well);
    tcase_add_test(tcase, what_says_no_number_is_passed_over);
    return suite_run("cgroup", tcase, NULL);
}
