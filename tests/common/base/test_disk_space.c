/* test_disk_space.c - a disk on which there is no room for a time. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gimbal-room-XXXXXX", file[64], below[64];

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/below", folder);
}

static void tear_down(void)
{
    unlink(file);
    rmdir(below);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else is in it */
}

START_TEST(what_is_there_stays_and_nothing_is_added)
{
    struct error err;
    char *text;
    ck_assert_int_eq(file_write(file, "before", 0600, &err), 0);
    disk_space_deny(60000);
    ck_assert_uint_gt(disk_space_denied_ms(), 0);
    ck_assert_int_eq(file_write(file, "after", 0600, &err), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.text, "file': No space left on device"));
    ck_assert_int_eq(folder_make(below, &err), -ENOSPC);
    ck_assert_int_eq(folder_make(folder, &err), 0); /* it is there already */
    ck_assert_int_eq(file_read(file, &text, &err), 0);
    ck_assert_str_eq(text, "before");
    free(text);
}
END_TEST

START_TEST(there_is_room_again_after_the_time)
{
    struct error err;
    disk_space_deny(30);
    ck_assert_uint_le(disk_space_denied_ms(), 31);
    while (disk_space_denied_ms() > 0)
        sched_yield();
    ck_assert_uint_eq(disk_space_denied_ms(), 0);
    ck_assert_int_eq(file_write(file, "after", 0600, &err), 0);
    ck_assert_int_eq(folder_make(below, &err), 0);
}
END_TEST

START_TEST(the_last_word_counts)
{
    disk_space_deny(60000);
    disk_space_deny(0);
    ck_assert_uint_eq(disk_space_denied_ms(), 0);
}
END_TEST

SUITE(disk_space)
{
    TCase *tcase = tcase_create("room");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_is_there_stays_and_nothing_is_added);
    tcase_add_test(tcase, there_is_room_again_after_the_time);
    tcase_add_test(tcase, the_last_word_counts);
    return suite_run("disk space", tcase, NULL);
}
