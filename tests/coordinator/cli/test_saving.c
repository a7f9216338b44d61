/* test_saving.c - the exit codes for the folder of a local training's checkpoints and for its job
 * file: what cannot be one, and what is not allowed. */
#include "common/base/memory.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/machine.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534 /* whom Linux gives nothing */

static char folder[64];

static void setup(void)
{
    strcpy(folder, "/tmp/gimbal-saving-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(seteuid(getuid()), 0);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

/* The exit code for FOLDER/NAME, and the words. */
static int prepare(const char *name, bool resume, struct error *err)
{
    char *dir = xasprintf("%s/%s", folder, name);
    err->text[0] = '\0';
    char *root = NULL;
    int code = exit_of_errno(machine_prepare_saving(dir, "bottles", resume, &root, err));
    free(root);
    free(dir);
    return code;
}

static bool is_there(const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

START_TEST(the_folder_is_made_with_those_above)
{
    struct error err;
    ck_assert_msg(prepare("a/b", false, &err) == EXIT_DONE, "%s", err.text);
    ck_assert(is_there("a/b/bottles-local"));
    ck_assert_msg(prepare("a/b", true, &err) == EXIT_DONE, "%s", err.text);
    ck_assert_msg(prepare("a/b", false, &err) == EXIT_DONE, "%s", err.text);
}
END_TEST

START_TEST(a_misspelt_folder_to_resume_from_is_not_made)
{
    struct error err;
    ck_assert_msg(prepare("misspelt", true, &err) == EXIT_DONE, "%s", err.text);
    ck_assert(!is_there("misspelt"));
}
END_TEST

START_TEST(a_folder_under_a_file_is_a_wrong_name)
{
    struct error err;
    char *path = xasprintf("%s/file", folder);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    for (int resume = 0; resume < 2; resume++) {
        ck_assert_int_eq(prepare("file", resume, &err), EXIT_INPUT);
        ck_assert_ptr_nonnull(strstr(err.text, "/file' is no folder"));
        ck_assert_int_eq(prepare("file/more", resume, &err), EXIT_INPUT);
        ck_assert_ptr_nonnull(strstr(err.text, "/file' is no folder"));
    }
    free(path);
}
END_TEST

/* Whoever is root becomes nobody for it; everybody else is kept out by the mode. */
START_TEST(a_folder_in_somebody_elses_is_not_allowed)
{
    struct error err;
    ck_assert_int_eq(prepare("ours", false, &err), EXIT_DONE);
    char *ours = xasprintf("%s/ours/bottles-local", folder);
    ck_assert_int_eq(chmod(ours, 0555), 0);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(prepare("theirs", false, &err), EXIT_PERMISSION);
    ck_assert_ptr_nonnull(strstr(err.text, "Permission denied"));
    for (int resume = 0; resume < 2; resume++) {
        ck_assert_int_eq(prepare("ours", resume, &err), EXIT_PERMISSION);
        ck_assert_ptr_nonnull(strstr(err.text, "bottles-local' cannot be written"));
    }
    ck_assert_int_eq(seteuid(getuid()), 0);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(chmod(ours, 0700), 0);
    free(ours);
}
END_TEST

START_TEST(a_job_file_that_may_not_be_read_is_not_allowed)
{
    struct error err = {""};
    struct job_config *job;
    char *text, *path = xasprintf("%s/job.yaml", folder);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(jobfile_load(path, &text, &job, &err), EXIT_PERMISSION);
    ck_assert_ptr_nonnull(strstr(err.text, "Permission denied"));
    ck_assert_int_eq(seteuid(getuid()), 0);
    free(path);
}
END_TEST

SUITE(saving)
{
    TCase *tcase = tcase_create("saving");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_folder_is_made_with_those_above);
    tcase_add_test(tcase, a_misspelt_folder_to_resume_from_is_not_made);
    tcase_add_test(tcase, a_folder_under_a_file_is_a_wrong_name);
    tcase_add_test(tcase, a_folder_in_somebody_elses_is_not_allowed);
    tcase_add_test(tcase, a_job_file_that_may_not_be_read_is_not_allowed);
    return suite_run("saving", tcase, NULL);
}
