/* test_rendezvous.c - values by job, epoch and key, until they are forgotten. */
#include "coordinator/rendezvous/rendezvous.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put(struct rendezvous *rendezvous, const char *job, uint64_t epoch, const char *key,
                const char *value)
{
    struct error err = {""};
    int rc = rendezvous_put(rendezvous, job, epoch, key, value, strlen(value), &err);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static bool has(const struct rendezvous *rendezvous, const char *job, uint64_t epoch,
                const char *key, const char *value)
{
    const void *bytes;
    size_t size;
    return rendezvous_get(rendezvous, job, epoch, key, &bytes, &size) && size == strlen(value) &&
           (size == 0 || memcmp(bytes, value, size) == 0);
}

START_TEST(a_value_is_there_once_it_was_put)
{
    struct rendezvous *rendezvous = rendezvous_create();
    const void *bytes;
    size_t size;
    ck_assert(!rendezvous_get(rendezvous, "j-1", 1, "a", &bytes, &size));
    put(rendezvous, "j-1", 1, "a", ":1");
    put(rendezvous, "j-1", 1, "empty", "");
    ck_assert(has(rendezvous, "j-1", 1, "a", ":1"));
    ck_assert(has(rendezvous, "j-1", 1, "empty", ""));
    ck_assert(!rendezvous_get(rendezvous, "j-1", 1, "b", &bytes, &size));
    rendezvous_destroy(rendezvous);
}
END_TEST

START_TEST(jobs_and_epochs_do_not_see_each_other)
{
    struct rendezvous *rendezvous = rendezvous_create();
    put(rendezvous, "j-1", 1, "a", "one");
    put(rendezvous, "j-1", 2, "a", "two");
    put(rendezvous, "j-11", 1, "a", "three");
    ck_assert(has(rendezvous, "j-1", 1, "a", "one"));
    ck_assert(has(rendezvous, "j-1", 2, "a", "two"));
    rendezvous_forget(rendezvous, "j-1");
    ck_assert(!has(rendezvous, "j-1", 1, "a", "one"));
    ck_assert(!has(rendezvous, "j-1", 2, "a", "two"));
    ck_assert(has(rendezvous, "j-11", 1, "a", "three"));
    rendezvous_destroy(rendezvous);
}
END_TEST

START_TEST(a_value_is_put_once_but_may_be_repeated)
{
    struct rendezvous *rendezvous = rendezvous_create();
    struct error err;
    put(rendezvous, "j-1", 1, "a", ":1");
    put(rendezvous, "j-1", 1, "a", ":1");
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 1, "a", ":2", 2, &err), -EEXIST);
    ck_assert_str_eq(err.text, "j-1, epoch 1: 'a' was put before, with another value");
    ck_assert(has(rendezvous, "j-1", 1, "a", ":1"));
    rendezvous_destroy(rendezvous);
}
END_TEST

START_TEST(what_is_under_a_prefix_can_be_forgotten)
{
    struct rendezvous *rendezvous = rendezvous_create();
    put(rendezvous, "j-1", 1, "kept/20/0", ":1");
    put(rendezvous, "j-1", 1, "kept/200/0", ":2");
    put(rendezvous, "j-2", 1, "kept/20/0", ":3");
    rendezvous_forget_prefix(rendezvous, "j-1", "kept/20/");
    ck_assert(!has(rendezvous, "j-1", 1, "kept/20/0", ":1"));
    ck_assert(has(rendezvous, "j-1", 1, "kept/200/0", ":2"));
    ck_assert(has(rendezvous, "j-2", 1, "kept/20/0", ":3"));
    put(rendezvous, "j-1", 1, "kept/20/0", ":4"); /* another value: the old one is forgotten */
    rendezvous_destroy(rendezvous);
}
END_TEST

START_TEST(keys_and_epochs_have_their_limits)
{
    struct rendezvous *rendezvous = rendezvous_create();
    struct error err;
    char key[RENDEZVOUS_KEY_SIZE + 1];
    memset(key, 'k', sizeof key);
    key[RENDEZVOUS_KEY_SIZE] = '\0';
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 1, key, "", 0, &err), -EINVAL);
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 1, "", "", 0, &err), -EINVAL);
    key[RENDEZVOUS_KEY_SIZE - 1] = '\0';
    put(rendezvous, "j-1", 1, key, "fits");

    size_t size = RENDEZVOUS_BYTES_MAX - RENDEZVOUS_KEY_SIZE;
    char *large = calloc(1, size);
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 1, "large", large, size, &err), -ENOSPC);
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 2, "large", large, size, &err), 0);
    ck_assert_int_eq(rendezvous_put(rendezvous, "j-1", 2, "more", large, 256, &err), -ENOSPC);
    free(large);
    rendezvous_destroy(rendezvous);
}
END_TEST

SUITE(rendezvous)
{
    TCase *tcase = tcase_create("rendezvous");
    tcase_add_test(tcase, a_value_is_there_once_it_was_put);
    tcase_add_test(tcase, jobs_and_epochs_do_not_see_each_other);
    tcase_add_test(tcase, a_value_is_put_once_but_may_be_repeated);
    tcase_add_test(tcase, what_is_under_a_prefix_can_be_forgotten);
    tcase_add_test(tcase, keys_and_epochs_have_their_limits);
    return suite_run("rendezvous", tcase, NULL);
}
