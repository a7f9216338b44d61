/* test_lines.c - output in pieces of any size becomes whole lines, and logfmt is understood. */
#include "worker/node/lines.h"

#include "common/base/text.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static struct lines lines;
static char seen[4096];

static void note(void *data, const char *line)
{
    (void)data;
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "[%s]", line);
}

static void set_up(void)
{
    memset(&lines, 0, sizeof lines);
    seen[0] = '\0';
}

static void feed(const char *text)
{
    lines_feed(&lines, text, strlen(text), note, NULL);
}

START_TEST(lines_are_whole_whatever_pieces_they_come_in)
{
    static const char text[] = "one\n\ntwo two\nthree";
    for (size_t i = 0; text[i]; i++)
        lines_feed(&lines, &text[i], 1, note, NULL);
    ck_assert_str_eq(seen, "[one][two two]");
    lines_end(&lines, note, NULL);
    lines_end(&lines, note, NULL);
    ck_assert_str_eq(seen, "[one][two two][three]");
}
END_TEST

START_TEST(a_line_is_utf8_without_control_characters)
{
    feed("a\tb\033[1m gr\xc3\xbc\xc3\x9f"
         "e \xff\n");
    ck_assert_str_eq(seen, "[a?b?[1m gr\xc3\xbc\xc3\x9f"
                           "e ?]");
}
END_TEST

START_TEST(a_long_line_is_cut)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    lines_feed(&lines, text, sizeof text, note, NULL);
    feed("\nnext\n");
    ck_assert_uint_eq(strspn(seen + 1, "x"), LINES_SIZE - 1);
    ck_assert_str_eq(seen + LINES_SIZE, "][next]");
}
END_TEST

START_TEST(the_last_lines_are_remembered_in_order)
{
    char last[256];
    ck_assert_str_eq(lines_last(&lines, last, sizeof last), "");
    feed("1\n2\n");
    ck_assert_str_eq(lines_last(&lines, last, sizeof last), "1 | 2");
    feed("3\n4\n5\n6\n7\n");
    ck_assert_str_eq(lines_last(&lines, last, sizeof last), "3 | 4 | 5 | 6 | 7");
    ck_assert_str_eq(lines_last(&lines, last, 8), "3 | 4 |");
}
END_TEST

START_TEST(what_is_cut_is_utf8_still)
{
    char last[16], level[8], text[LINES_SIZE];
    feed("gr\xc3\xbc\xc3\x9f"
         "e\n\xe2\x82\xac\n");
    for (size_t size = 1; size <= sizeof last; size++)
        ck_assert(text_valid(lines_last(&lines, last, size)));
    ck_assert_str_eq(last, "gr\xc3\xbc\xc3\x9f"
                           "e | \xe2\x82\xac");
    line_read("ts=1 level=\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc msg=\"\"", level, text, sizeof text);
    ck_assert(text_valid(level));
}
END_TEST

START_TEST(what_only_informs_says_nothing_about_an_end)
{
    char last[256];
    feed("ts=1 level=info mod=executor msg=\"rank 1 keeps 1 KiB\"\n"
         "ts=2 level=warn mod=executor msg=\"no checkpoint of step 2: \\\"x\\\"\"\n"
         "terminate called\n");
    ck_assert_str_eq(lines_last(&lines, last, sizeof last),
                     "no checkpoint of step 2: \"x\" | terminate called");
    feed("ts=3 level=info mod=executor msg=\"a\"\nts=3 level=info mod=executor msg=\"b\"\n"
         "ts=3 level=debug mod=executor msg=\"c\"\nts=3 level=info mod=executor msg=\"d\"\n"
         "ts=3 level=info mod=executor msg=\"e\"\n");
    ck_assert_str_eq(lines_last(&lines, last, sizeof last), "");
}
END_TEST

static const struct {
    const char *line, *level, *text;
} readings[] = {
    {"ts=2026-01-01T00:00:00.000Z level=warn mod=executor msg=\"say \\\"hi\\\" \\\\ so\"", "warn",
     "say \"hi\" \\ so"},
    {"ts=1 level=unheard-of mod=x msg=\"unfinished", "unheard", "unfinished"},
    {"Assertion `a' failed.", "error", "Assertion `a' failed."},
    {"ts=of nothing", "error", "ts=of nothing"},
};

START_TEST(the_level_and_message_of_logfmt_are_read)
{
    char level[8], text[LINES_SIZE];
    line_read(readings[_i].line, level, text, sizeof text);
    ck_assert_str_eq(level, readings[_i].level);
    ck_assert_str_eq(text, readings[_i].text);
}
END_TEST

SUITE(lines)
{
    TCase *tcase = tcase_create("lines");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, lines_are_whole_whatever_pieces_they_come_in);
    tcase_add_test(tcase, a_line_is_utf8_without_control_characters);
    tcase_add_test(tcase, a_long_line_is_cut);
    tcase_add_test(tcase, the_last_lines_are_remembered_in_order);
    tcase_add_test(tcase, what_is_cut_is_utf8_still);
    tcase_add_test(tcase, what_only_informs_says_nothing_about_an_end);
    tcase_add_loop_test(tcase, the_level_and_message_of_logfmt_are_read, 0,
                        sizeof readings / sizeof *readings);
    return suite_run("lines", tcase, NULL);
}
