/* test_listed.c - what the store has of checkpoints: those that are listed, and what ranks told
 * each other about those that are not yet. */
#include <stdio.h>
#include <string.h>

#include "tests/coordinator/store_fixture.h"
#include "tests/support/suite.h"

static void put_checkpoint(const struct job *job, uint64_t step, uint32_t epoch, const char *path)
{
    struct store_checkpoint checkpoint = {step, epoch, path, 1000 + step, 7000 + step};
    store_put_checkpoint(store, job, &checkpoint, 2);
}

START_TEST(the_newest_checkpoints_come_back)
{
    struct job job = job_make(5, NULL, 0), other = job_make(6, NULL, 0), *back;
    struct store_checkpoint *listed;
    size_t count;
    reopen();
    store_put_job(store, &job);
    store_put_job(store, &other);
    put_checkpoint(&job, 20, 1, "/c/step-20.epoch-1");
    put_checkpoint(&other, 5, 1, "/d/step-5.epoch-1");
    put_checkpoint(&job, 40, 1, "/c/step-40.epoch-1");
    put_checkpoint(&job, 60, 2, "/c/step-60.epoch-2");
    put_checkpoint(&job, 60, 2, "/c/step-60.epoch-2"); /* told again */
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_int_eq(store_read_checkpoints(store, &job, &listed, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(listed[0].folder, "/c/step-60.epoch-2");
    ck_assert_uint_eq(listed[0].epoch, 2);
    ck_assert_uint_eq(listed[1].step, 40);
    ck_assert_uint_eq(listed[1].bytes, 1040);
    ck_assert_uint_eq(listed[1].unix_ms, 7040);
    store_checkpoints_free(listed, count);
    back = job_back(5);
    ck_assert_ptr_nonnull(back);
    ck_assert_uint_eq(back->checkpoint_step, 60);
    ck_assert_uint_eq(back->checkpoint_epoch, 2);
    job_destroy(back);
}
END_TEST

START_TEST(a_damaged_one_stays_until_the_job_has_got_as_far_again)
{
    struct job job = job_make(5, NULL, 0), *back;
    struct store_checkpoint *listed;
    size_t count;
    reopen();
    store_put_job(store, &job);
    put_checkpoint(&job, 40, 1, "/c/step-40.epoch-1");
    put_checkpoint(&job, 60, 1, "/c/step-60.epoch-1");
    store_damage_checkpoint(store, &job, 60, 1);
    put_checkpoint(&job, 50, 2, "/c/step-50.epoch-2");
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_int_eq(store_read_checkpoints(store, &job, &listed, &count, &err), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert(listed[0].step == 60 && listed[0].damaged);
    ck_assert(listed[1].step == 50 && !listed[1].damaged);
    ck_assert(listed[2].step == 40 && !listed[2].damaged);
    store_checkpoints_free(listed, count);
    back = job_back(5);
    ck_assert_ptr_nonnull(back);
    ck_assert_uint_eq(back->checkpoint_step, 50);
    ck_assert_uint_eq(back->checkpoint_epoch, 2);
    job_destroy(back);

    put_checkpoint(&job, 60, 2, "/c/step-60.epoch-2");
    ck_assert_int_eq(store_read_checkpoints(store, &job, &listed, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(listed[0].folder, "/c/step-60.epoch-2");
    ck_assert_uint_eq(listed[1].step, 50);
    store_checkpoints_free(listed, count);
}
END_TEST

/* Nothing is deleted that a job which lasts would start from again. */
START_TEST(what_another_job_goes_on_from_stays_listed_until_that_one_has_ended)
{
    struct job job = job_make(5, NULL, 0), heir = job_make(6, NULL, 0);
    struct store_checkpoint *listed;
    size_t count;
    reopen();
    heir.origin = (char *)"/c/step-20.epoch-1";
    put_checkpoint(&job, 20, 1, heir.origin);
    store_put_job(store, &job);
    store_put_job(store, &heir);
    put_checkpoint(&job, 40, 1, "/c/step-40.epoch-1");
    put_checkpoint(&job, 60, 1, "/c/step-60.epoch-1");
    ck_assert_int_eq(store_read_checkpoints(store, &job, &listed, &count, &err), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(listed[2].folder, heir.origin);
    store_checkpoints_free(listed, count);
    heir.ended_ms = 1;
    store_put_job(store, &heir);
    put_checkpoint(&job, 80, 1, "/c/step-80.epoch-1");
    ck_assert_int_eq(store_read_checkpoints(store, &job, &listed, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(listed[1].step, 60);
    store_checkpoints_free(listed, count);
}
END_TEST

static int take_value(void *data, const char *job, uint64_t epoch, const char *key,
                      const void *value, size_t size, struct error *error)
{
    char *text = data;
    (void)error;
    sprintf(text + strlen(text), "%s %d %s %.*s; ", job, (int)epoch, key, (int)size,
            (const char *)value);
    return 0;
}

START_TEST(values_that_are_kept_come_back_until_they_are_deleted)
{
    char text[256] = "";
    reopen();
    store_put_value(store, "j-1", 1, "kept/20/0", "a", 1);
    store_put_value(store, "j-1", 1, "kept/200/0", "b", 1);
    store_put_value(store, "j-2", 3, "kept/20/0", "", 0);
    store_delete_values(store, "j-1", "kept/20/");
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_int_eq(store_read_values(store, take_value, text, &err), 0);
    ck_assert_str_eq(text, "j-1 1 kept/200/0 b; j-2 3 kept/20/0 ; ");
    store_delete_values(store, "j-2", "");
    text[0] = '\0';
    ck_assert_int_eq(store_read_values(store, take_value, text, &err), 0);
    ck_assert_str_eq(text, "j-1 1 kept/200/0 b; ");
}
END_TEST

SUITE(listed)
{
    TCase *tcase = tcase_create("listed");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_newest_checkpoints_come_back);
    tcase_add_test(tcase, a_damaged_one_stays_until_the_job_has_got_as_far_again);
    tcase_add_test(tcase, what_another_job_goes_on_from_stays_listed_until_that_one_has_ended);
    tcase_add_test(tcase, values_that_are_kept_come_back_until_they_are_deleted);
    return suite_run("listed", tcase, NULL);
}
