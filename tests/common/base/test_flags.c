/* test_flags.c - command lines, right and wrong ones. */
#include "common/base/flags.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

struct values {
    bool quiet, help;
    int mode, descriptor;
    const char *file, *token;
    int64_t rank;
    double share, timeout_s;
    uint64_t memory;
    int format;
};

#define AT(member, what) .kind = what, .offset = offsetof(struct values, member)

static const char *const formats[] = {"table", "json", NULL};

static const struct flag flags[] = {
    {"quiet", 'q', AT(quiet, FLAG_SWITCH)},
    {"check", 0, AT(mode, FLAG_SET), .standard = 3},
    {"descriptor", 'd', AT(descriptor, FLAG_INTEGER), "FD", .least = 3},
    {"file", 'f', AT(file, FLAG_TEXT), "FILE"},
    {"rank", 'r', AT(rank, FLAG_NUMBER), "R", .standard = -1},
    {"share", 0, AT(share, FLAG_REAL)},
    {"timeout", 0, AT(timeout_s, FLAG_TIME), "TIME"},
    {"memory", 0, AT(memory, FLAG_SIZE), "SIZE"},
    {"format", 0, AT(format, FLAG_WORD), "FORMAT", .words = formats},
    {"token", 't', AT(token, FLAG_OPTION), "TOKEN"},
    {.name = NULL},
};

static const struct flag others[] = {
    {"help", 'h', AT(help, FLAG_SWITCH)},
    {"final", 'f', AT(help, FLAG_SWITCH)}, /* -f is the file */
    {.name = NULL},
};

static struct values values;
static struct flag_table tables[] = {{flags, &values}, {others, &values}};
static char *argv[16];
static int argc, next;
static struct error err;

/* Words are ended by NULL; argv[0] is added. */
static int read_words(bool leading, const char *const *words)
{
    argc = 0;
    argv[argc++] = (char *)"program";
    for (; *words; words++)
        argv[argc++] = (char *)*words;
    argv[argc] = NULL;
    values = (struct values){.descriptor = -1};
    err.text[0] = '\0';
    return flags_read(tables, 2, "see --help", leading, argc, argv, &next, &err);
}
#define READ(...) read_words(false, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(a_value_of_every_kind_goes_where_its_row_says)
{
    ck_assert_int_eq(READ("-q", "--check", "-d7", "--file", "f", "-r", "2", "--share=0.5",
                          "--timeout", "2m", "--memory", "16GiB", "--format", "json"),
                     0);
    ck_assert(values.quiet && !values.help);
    ck_assert_int_eq(values.mode, 3);
    ck_assert_int_eq(values.descriptor, 7);
    ck_assert_str_eq(values.file, "f");
    ck_assert_int_eq(values.rank, 2);
    ck_assert_double_eq(values.share, 0.5);
    ck_assert_double_eq(values.timeout_s, 120);
    ck_assert_uint_eq(values.memory, UINT64_C(16) << 30);
    ck_assert_int_eq(values.format, 1);
    ck_assert_int_eq(next, argc);
}
END_TEST

START_TEST(what_is_missing_stays_or_has_its_standard)
{
    ck_assert_int_eq(READ("--quiet"), 0);
    ck_assert_int_eq(values.descriptor, -1);
    ck_assert_int_eq(values.rank, -1);
    ck_assert_int_eq(values.mode, 0);
    ck_assert_uint_eq(tables[0].given, 1);
    ck_assert_uint_eq(tables[1].given, 0);
}
END_TEST

START_TEST(an_option_has_a_value_only_behind_an_equals_sign)
{
    ck_assert_int_eq(READ("-q"), 0);
    ck_assert_ptr_null(values.token);
    ck_assert_int_eq(READ("--token=<end>"), 0);
    ck_assert_str_eq(values.token, "<end>");
    ck_assert_int_eq(READ("--token", "one"), 0);
    ck_assert_str_eq(values.token, "");
    ck_assert_str_eq(argv[next], "one");
    ck_assert_int_eq(READ("-tq", "one"), 0);
    ck_assert_str_eq(values.token, "");
    ck_assert(values.quiet);
    ck_assert_int_eq(argc - next, 1);
}
END_TEST

START_TEST(arguments_come_in_any_order_unless_flags_lead)
{
    ck_assert_int_eq(READ("one", "-q", "--", "--help"), 0);
    ck_assert(values.quiet && !values.help);
    ck_assert_int_eq(argc - next, 2);
    ck_assert_str_eq(argv[next], "one");
    ck_assert_str_eq(argv[next + 1], "--help");
    ck_assert_int_eq(read_words(true, (const char *const[]){"-q", "one", "--help", NULL}), 0);
    ck_assert(values.quiet && !values.help);
    ck_assert_str_eq(argv[next], "one");
}
END_TEST

START_TEST(a_letter_is_that_of_the_first_table)
{
    ck_assert_int_eq(READ("-f", "name", "--final"), 0);
    ck_assert_str_eq(values.file, "name");
    ck_assert(values.help);
    ck_assert_uint_eq(tables[0].given, 1 << 3);
    ck_assert_uint_eq(tables[1].given, 1 << 1);
}
END_TEST

static const struct {
    const char *words[3], *text;
} wrong[] = {
    {{"--fiel", "x"}, "unknown flag --fiel; did you mean --file?"},
    {{"--elephant"}, "unknown flag --elephant; see --help"},
    {{"-quiet"}, "unknown flag -quiet; did you mean --quiet?"},
    {{"-Q"}, "unknown flag -Q; did you mean -q?"},
    {{"-qx"}, "unknown flag -x in '-qx'; see --help"},
    {{"--f"}, "--f is the beginning of more than one flag; write it out"},
    {{"--quiet=yes"}, "--quiet takes no value"},
    {{"--check=yes"}, "--check takes no value"},
    {{"--fil"}, "--file needs FILE"},
    {{"--share"}, "--share needs a value"},
    {{"-f"}, "-f needs FILE"},
    {{"-d", "2"}, "--descriptor '2' must be a whole number, 3 to 2147483647"},
    {{"-d", "2147483648"}, "--descriptor '2147483648' must be a whole number, 3 to 2147483647"},
    {{"--rank", "1.5"}, "--rank '1.5' must be a whole number, at least 0"},
    {{"--share", "half"}, "--share 'half' must be a number"},
    {{"--timeout", "0s"}, "--timeout '0s' must be more than zero, and at most 500h"},
    {{"--memory", "1KiB"}, "--memory '1KiB' must be a size with its unit, 1MiB to 1024TiB"},
    {{"--format", "svg"}, "--format 'svg' is unknown; known: table, json"},
};

START_TEST(a_wrong_flag_is_told_in_a_sentence)
{
    ck_assert_int_eq(read_words(false, wrong[_i].words), -EINVAL);
    ck_assert_str_eq(err.text, wrong[_i].text);
}
END_TEST

SUITE(flags)
{
    TCase *tcase = tcase_create("flags");
    tcase_add_test(tcase, a_value_of_every_kind_goes_where_its_row_says);
    tcase_add_test(tcase, what_is_missing_stays_or_has_its_standard);
    tcase_add_test(tcase, an_option_has_a_value_only_behind_an_equals_sign);
    tcase_add_test(tcase, arguments_come_in_any_order_unless_flags_lead);
    tcase_add_test(tcase, a_letter_is_that_of_the_first_table);
    tcase_add_loop_test(tcase, a_wrong_flag_is_told_in_a_sentence, 0, sizeof wrong / sizeof *wrong);
    return suite_run("flags", tcase, NULL);
}
