/* test_cgroup.c - memory limits, read from a directory that looks like the kernel's. */
#include "worker/supervisor/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
    put("self", "1:name=systemd:/other\n0::/outer/inner\n");
}

static void teardown(void)
{
    static const char *const names[] = {"outer/inner/memory.max", "outer/memory.max", "memory.max",
                                        "self"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/outer/inner", root);
    rmdir(path);
    snprintf(path, sizeof path, "%s/outer", root);
    rmdir(path);
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

int main(void)
{
    TCase *tcase = tcase_create("cgroup");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, without_limits_there_is_none);
    tcase_add_test(tcase, the_tightest_of_the_groups_around_holds);
    tcase_add_test(tcase, a_limit_that_is_not_understood_is_named);
    return suite_run("cgroup", tcase, NULL);
}
