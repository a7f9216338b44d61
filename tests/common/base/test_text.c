/* test_text.c - every character, and what is like one and is none; words like others. */
#include "common/base/text.h"

#include "tests/support/suite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By the table of RFC 3629, section 3. */
static size_t encode(uint32_t point, char *out)
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(leads[size] | point);
    return size;
}

START_TEST(every_character_has_its_size_and_no_part_of_it_is_one)
{
    for (uint32_t point = 0; point < 0x120000; point++) {
        char text[4];
        size_t size = encode(point, text);
        bool is_character = point < 0x110000 && point >> 11 != 0xd800 >> 11;
        /* Check notes each assertion in a file: there are two million here. */
        if (text_size(text, size) != (is_character ? size : 0))
            ck_abort_msg("U+%04X", point);
        if (text_size(text, size - 1) != 0)
            ck_abort_msg("part of U+%04X", point);
    }
}
END_TEST

/* RFC 3629, section 4: leads and second bytes by their pairs, the rest 80 to BF. */
START_TEST(nothing_else_is_a_character)
{
    static const unsigned char bounds[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    size_t found[5] = {0};
    for (unsigned pair = 0; pair < 0x10000; pair++)
        for (size_t third = 0; third < sizeof bounds; third++)
            for (size_t fourth = 0; fourth < sizeof bounds; fourth++) {
                const unsigned char text[] = {(unsigned char)(pair >> 8), (unsigned char)pair,
                                              bounds[third], bounds[fourth]};
                found[text_size(text, sizeof text)]++;
            }
    ck_assert_uint_eq(found[1], 128 * 256 * 36);
    ck_assert_uint_eq(found[2], 30 * 64 * 36);
    ck_assert_uint_eq(found[3], (32 + 12 * 64 + 32 + 2 * 64) * 2 * 6);
    ck_assert_uint_eq(found[4], (48 + 3 * 64 + 16) * 2 * 2);
}
END_TEST

/* At every place of two words of eight, of which all but one character are ASCII. */
START_TEST(a_text_is_as_good_as_its_worst_byte)
{
    static const struct {
        const char *bytes;
        bool valid;
    } parts[] = {{"a", true},
                 {"\u00e9", true},
                 {"\u20ac", true},
                 {"\U0001f600", true},
                 {"\x80", false},
                 {"\xc3", false},
                 {"\xff", false},
                 {"\xc0\xaf", false},
                 {"\xed\xa0\x80", false},
                 {"\xf4\x90\x80\x80", false}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (size_t place = 0; place < 16; place++) {
            char text[32] = "";
            memset(text, 'x', place);
            strcpy(&text[place], parts[i].bytes);
            memset(&text[strlen(text)], 'y', _i ? 16 - place : 0);
            ck_assert_msg(text_valid(text) == parts[i].valid, "'%s'", text);
        }
    ck_assert(text_valid(""));
}
END_TEST

static const struct {
    const char *from, *to;
} lines[] = {
    {"plain", "plain"},
    {"gr\u00fcn\n\033[31mrot\177", "gr\u00fcn??[31mrot?"},
    {"\xc2\x85\xc2\x9b\u00a0", "????\u00a0"},
    {"cut \xc3", "cut "},
    {"cut \xe2\x82", "cut "},
    {"cut \xf0\x9f\x98", "cut "},
    {"whole \u20ac", "whole \u20ac"},
    {"\xc2", ""},
    {"", ""},
};

START_TEST(a_line_from_elsewhere_is_tamed)
{
    char *text = strdup(lines[_i].from);
    text_tame(text);
    ck_assert_str_eq(text, lines[_i].to);
    ck_assert(text_valid(text));
    free(text);
}
END_TEST

START_TEST(bytes_of_a_model_become_text)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"plain\n\ttext", "plain\n\ttext"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"\xff\xc3", "??"},
        {"\xed\xa0\x80", "???"}, /* a surrogate */
        {"\x1b[2J", "?[2J"},
        {"\xc2\x9b", "??"}, /* the same in one byte */
        {"\x7f", "?"},
        {"\xc0\xaf", "??"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_clean(cases[i].from, strlen(cases[i].from));
        ck_assert_str_eq(text, cases[i].to);
        free(text);
    }
}
END_TEST

START_TEST(what_may_go_on_is_told_from_what_is_complete)
{
    static const struct {
        const char *text;
        size_t cut;
    } cases[] = {
        {"", 0},         {"a", 0},        {"\xc3\xa9", 0},         {"a\xc3", 1},
        {"\xe2\x82", 2}, {"\x82\x82", 0}, {"\xf0\x9f\x98", 3},     {"\xf0\x9f\x98\x80", 0},
        {"a\xff", 0},    {"\x82", 0},     {"\x82\x82\x82\x82", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(text_cut(cases[i].text, strlen(cases[i].text)), cases[i].cut);
}
END_TEST

/* The edit distance of two words, found by how far a suggestion goes: a third of the letters, of
 * which equal ones at the end add nothing to the distance. */
static size_t distance(const char *one, const char *other)
{
    for (size_t bound = 1; bound < 8; bound++) {
        char word[64], candidate[64];
        size_t letters = strlen(one) < 3 * bound ? 3 * bound : strlen(one);
        if (letters / 3 > bound)
            continue;
        const char *const candidates[] = {candidate};
        int more = (int)(letters - strlen(one));
        snprintf(word, sizeof word, "%s%.*s", one, more, "........................");
        snprintf(candidate, sizeof candidate, "%s%.*s", other, more, "........................");
        if (text_nearest(word, candidates, 1))
            return bound;
    }
    return SIZE_MAX;
}

START_TEST(distance_counts_letters_and_swaps)
{
    const char *const both[] = {"setps", "steps"};
    ck_assert_str_eq(text_nearest("steps", both, 2), "steps"); /* 0 is less than 1 */
    ck_assert_uint_eq(distance("", "abc"), 3);
    ck_assert_uint_eq(distance("setps", "steps"), 1);
    ck_assert_uint_eq(distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(distance("ca", "abc"), 3);
}
END_TEST

START_TEST(only_a_near_word_is_suggested)
{
    const char *const words[] = {"holdout", "hidden", "seq"};
    ck_assert_str_eq(text_nearest("hiden", words, 3), "hidden");
    ck_assert_str_eq(text_nearest("hold_out", words, 3), "holdout");
    ck_assert_ptr_null(text_nearest("layers", words, 3));
    ck_assert_ptr_null(text_nearest("x", words, 3));
    const char *const equals[] = {"cat", "bat"};
    ck_assert_str_eq(text_nearest("hat", equals, 2), "cat");
}
END_TEST

START_TEST(text_that_is_no_utf8_is_mended)
{
    char text[] = "a\xff\xc3\xa9\xe2\x82";
    text_mend(text);
    ck_assert_str_eq(text, "a?\xc3\xa9??");
}
END_TEST

SUITE(text)
{
    TCase *tcase = tcase_create("text");
    tcase_add_test(tcase, every_character_has_its_size_and_no_part_of_it_is_one);
    tcase_add_test(tcase, nothing_else_is_a_character);
    tcase_add_loop_test(tcase, a_text_is_as_good_as_its_worst_byte, 0, 2);
    tcase_add_test(tcase, text_that_is_no_utf8_is_mended);
    tcase_add_loop_test(tcase, a_line_from_elsewhere_is_tamed, 0, sizeof lines / sizeof *lines);
    tcase_add_test(tcase, bytes_of_a_model_become_text);
    tcase_add_test(tcase, what_may_go_on_is_told_from_what_is_complete);
    tcase_add_test(tcase, distance_counts_letters_and_swaps);
    tcase_add_test(tcase, only_a_near_word_is_suggested);
    return suite_run("text", tcase, NULL);
}
