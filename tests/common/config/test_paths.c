/* test_paths.c - what a job names is resolved in one way, wherever it is named. */
#include "common/base/memory.h"
#include "common/config/paths.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *path, *right;
} tidy[] = {
    {"/", "/"},
    {"//", "/"},
    {"/a", "/a"},
    {"/a/", "/a"},
    {"//a///b//", "/a/b"},
    {"/./a/./b/.", "/a/b"},
    {"/a/../b", "/a/../b"}, /* a symbolic link may lead elsewhere */
    {"/.a/b..", "/.a/b.."},
};

START_TEST(a_path_is_tidied_and_means_the_same)
{
    struct error err;
    char *path;
    ck_assert_int_eq(path_resolve("dir", tidy[_i].path, PATH_NODES, &path, &err), 0);
    ck_assert_str_eq(path, tidy[_i].right);
    free(path);
}
END_TEST

START_TEST(a_relative_path_counts_from_here_and_means_nothing_on_nodes)
{
    struct error err;
    char *path, *here = getcwd(NULL, 0), *right = xasprintf("%s/a/b", here);
    ck_assert_int_eq(path_resolve("dir", "a//b", PATH_HERE, &path, &err), 0);
    ck_assert_str_eq(path, right);
    ck_assert_int_eq(path_resolve("checkpoint.dir", "a/b", PATH_NODES, NULL, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "checkpoint.dir 'a/b' must begin with '/'"), "%s", err.text);
    free(path);
    free(right);
    free(here);
}
END_TEST

START_TEST(no_path_and_too_long_a_path_are_refused)
{
    struct error err;
    char *long_path = xcalloc(1, PATH_MAX + 2);
    memset(long_path, 'a', PATH_MAX + 1);
    long_path[0] = '/';
    ck_assert_int_eq(path_resolve("dir", "", PATH_HERE, NULL, &err), -EINVAL);
    ck_assert_int_eq(path_resolve("dir", long_path, PATH_NODES, NULL, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "is longer than a path can be"), "%s", err.text);
    free(long_path);
}
END_TEST

SUITE(paths)
{
    TCase *tcase = tcase_create("paths");
    tcase_add_loop_test(tcase, a_path_is_tidied_and_means_the_same, 0, sizeof tidy / sizeof *tidy);
    tcase_add_test(tcase, a_relative_path_counts_from_here_and_means_nothing_on_nodes);
    tcase_add_test(tcase, no_path_and_too_long_a_path_are_refused);
    return suite_run("paths", tcase, NULL);
}
