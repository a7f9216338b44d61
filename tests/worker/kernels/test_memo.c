/* test_memo.c - choices that are kept in a file are found by the next process, and whatever else
 * the file holds is refused in words. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "worker/kernels/cuda/memo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TITLE "choices 1, of a device"

static char folder[] = "/tmp/gimbal-memo-XXXXXX", path[64];

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/memo", folder);
}

static void teardown(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct memo *open_memo(const char *at, int wanted, struct error *err)
{
    struct memo *memo;
    ck_assert_int_eq(memo_open(at, TITLE, &memo, err), wanted);
    return memo;
}

static void value_of(int number, unsigned char *value)
{
    memset(value, number, MEMO_VALUE_SIZE);
    value[0] = 1;
}

static void must_have(const struct memo *memo, const char *key, int number)
{
    unsigned char value[MEMO_VALUE_SIZE], right[MEMO_VALUE_SIZE];
    value_of(number, right);
    ck_assert(memo_find(memo, key, value));
    ck_assert_mem_eq(value, right, sizeof value);
}

static void add(struct memo *memo, const char *key, int number)
{
    unsigned char value[MEMO_VALUE_SIZE];
    value_of(number, value);
    memo_add(memo, key, value);
}

START_TEST(what_is_added_is_found_by_others)
{
    struct memo *first = open_memo(path, 0, NULL), *second;
    unsigned char value[MEMO_VALUE_SIZE];
    ck_assert(!memo_find(first, "a key", value));
    add(first, "a key", 0xfe);
    add(first, "a key", 3); /* the first one stays */
    second = open_memo(path, 0, NULL);
    add(first, "of the first", 4);
    add(second, "of the second", 5);
    must_have(first, "a key", 0xfe);
    must_have(second, "a key", 0xfe);
    memo_close(first);
    memo_close(second);
    first = open_memo(path, 0, NULL);
    must_have(first, "a key", 0xfe);
    must_have(first, "of the first", 4);
    must_have(first, "of the second", 5);
    memo_close(first);
}
END_TEST

START_TEST(without_a_file_nothing_is_kept)
{
    struct memo *memo = open_memo(NULL, 0, NULL);
    add(memo, "a key", 7);
    must_have(memo, "a key", 7);
    memo_close(memo);
    memo_close(NULL);
}
END_TEST

/* How a file may be wrong, and what is said of it. */
static const struct {
    const char *name;
    int line; /* 1: the title */
    int from; /* a character of it, which becomes `to`; -1: the line is cut there */
    char to;
    const char *words;
} damages[] = {
    {"title", 1, 8, '2', "choices 2, of a device', and this is 'choices 1"},
    {"value", 2, 5, 'x', "/memo:2: the line is damaged"},
    {"value that can be read", 3, 5, '7', "/memo:3: the line is damaged"},
    {"fingerprint", 2, 132, 'z', "/memo:2: the line is damaged"},
    {"key", 3, 146, '!', "/memo:3: the line is damaged"},
    {"torn", 3, -1, 0, "/memo:3: the line is damaged"},
};

START_TEST(a_damaged_file_is_begun_afresh_in_words)
{
    struct memo *memo = open_memo(path, 0, NULL);
    struct error err = {""};
    unsigned char value[MEMO_VALUE_SIZE];
    char *text, *line;
    add(memo, "first", 1);
    add(memo, "second", 2);
    memo_close(memo);
    ck_assert_int_eq(file_read(path, &text, NULL), 0);
    line = text;
    for (int i = 1; i < damages[_i].line; i++)
        line = strchr(line, '\n') + 1;
    if (damages[_i].from < 0)
        line[20] = 0;
    else
        line[damages[_i].from] = damages[_i].to;
    ck_assert_int_eq(file_write(path, text, 0644, NULL), 0);
    free(text);
    memo = open_memo(path, -EINVAL, &err);
    ck_assert_msg(strstr(err.text, damages[_i].words) != NULL, "%s: %s", damages[_i].name,
                  err.text);
    ck_assert(!memo_find(memo, "first", value));
    add(memo, "third", 3);
    memo_close(memo);
    memo = open_memo(path, 0, &err);
    must_have(memo, "third", 3);
    ck_assert(!memo_find(memo, "second", value));
    memo_close(memo);
}
END_TEST

SUITE(memo)
{
    TCase *tcase = tcase_create("memo");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_added_is_found_by_others);
    tcase_add_test(tcase, without_a_file_nothing_is_kept);
    tcase_add_loop_test(tcase, a_damaged_file_is_begun_afresh_in_words, 0,
                        (int)(sizeof damages / sizeof *damages));
    return suite_run("memo", tcase, NULL);
}
