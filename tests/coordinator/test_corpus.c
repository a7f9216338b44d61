/* test_corpus.c - in what words two lists of files differ. */
#include "coordinator/corpus/corpus.h"

#include <errno.h>

#include "tests/support/suite.h"

static struct corpus *first, *other;
static struct error err;

static void set_up(void)
{
    first = corpus_create("node-a", 1);
    corpus_add(first, "/data/a.txt", 1000, 0x11);
    corpus_add(first, "/data/b.txt", 2000, 0x22);
    other = corpus_create("node-b", 1);
}

static void tear_down(void)
{
    corpus_destroy(first);
    corpus_destroy(other);
}

static void differs(const char *words)
{
    ck_assert_int_eq(corpus_compare(first, other, &err), -EBADF);
    ck_assert_str_eq(err.text, words);
}

START_TEST(the_same_files_are_the_same)
{
    corpus_add(other, "/data/a.txt", 1000, 0x11);
    corpus_add(other, "/data/b.txt", 2000, 0x22);
    ck_assert_int_eq(corpus_compare(first, other, &err), 0);
}
END_TEST

START_TEST(another_size_is_told_with_both)
{
    corpus_add(other, "/data/a.txt", 1000, 0x11);
    corpus_add(other, "/data/b.txt", 1999, 0x23);
    differs("'/data/b.txt' has 2000 bytes on node-a and 1999 bytes on node-b");
}
END_TEST

START_TEST(another_content_is_told_with_both_hashes)
{
    corpus_add(other, "/data/a.txt", 1000, 0x12);
    corpus_add(other, "/data/b.txt", 2000, 0x22);
    differs(
        "'/data/a.txt' is not the same: its 1000 bytes have the hash 0000000000000011 on node-a "
        "and 0000000000000012 on node-b");
}
END_TEST

START_TEST(a_missing_file_is_told_by_its_name_on_either_node)
{
    corpus_add(other, "/data/b.txt", 2000, 0x22);
    differs("'/data/a.txt' is on node-a and is missing or empty on node-b");
    corpus_add(other, "/data/a.txt", 1000, 0x11);
    corpus_add(other, "/data/c.txt", 1000, 0x11);
    differs("'/data/c.txt' is on node-b and is missing or empty on node-a");
}
END_TEST

START_TEST(what_was_changed_between_epochs_is_told_with_the_epoch)
{
    corpus_destroy(other);
    other = corpus_create("node-a", 3);
    corpus_add(other, "/data/a.txt", 1001, 0x11);
    corpus_add(other, "/data/b.txt", 2000, 0x22);
    differs(
        "'/data/a.txt' has 1000 bytes on node-a in epoch 1 and 1001 bytes on node-a in epoch 3");
}
END_TEST

SUITE(corpus)
{
    TCase *tcase = tcase_create("corpus");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_same_files_are_the_same);
    tcase_add_test(tcase, another_size_is_told_with_both);
    tcase_add_test(tcase, another_content_is_told_with_both_hashes);
    tcase_add_test(tcase, a_missing_file_is_told_by_its_name_on_either_node);
    tcase_add_test(tcase, what_was_changed_between_epochs_is_told_with_the_epoch);
    return suite_run("corpus", tcase, NULL);
}
