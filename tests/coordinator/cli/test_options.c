/* test_options.c - command lines, right and wrong. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/options.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct values {
    bool all;
    int64_t rank;
    const char *file;
    uint64_t room;
};

static const struct flag flags[] = {
    {"all", 'a', FLAG_SWITCH, offsetof(struct values, all), NULL, "everything"},
    {"rank", 'r', FLAG_NUMBER, offsetof(struct values, rank), "R", "one", .standard = -1},
    {"file", 'f', FLAG_TEXT, offsetof(struct values, file), "FILE", "a file"},
    {"room", 0, FLAG_SIZE, offsetof(struct values, room), "SIZE", "how much"},
    {.name = NULL},
};

static const struct command command = {
    .name = "try",
    .summary = "Try",
    .arguments = "JOB",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = flags,
    .values_size = sizeof(struct values),
    .takes = TAKES_OUTPUT | TAKES_TIMEOUT,
};

static struct invocation invocation;
static struct error err;

/* Words are ended by NULL; argv[0] is added. */
static int read_words(const char *const *words)
{
    static char *argv[16];
    int argc = 0;
    argv[argc++] = "try";
    for (; *words; words++)
        argv[argc++] = (char *)*words;
    argv[argc] = NULL;
    options_finish(&invocation);
    invocation = (struct invocation){0};
    return options_read(&command, argc, argv, &invocation, &err);
}
#define READ(...) read_words((const char *const[]){__VA_ARGS__, NULL})

static void finish(void)
{
    options_finish(&invocation);
}

START_TEST(flags_and_arguments_come_in_any_order)
{
    ck_assert_int_eq(READ("--rank=3", "j-1", "-a", "-o", "json", "--timeout", "2m"), 0);
    const struct values *values = invocation.values;
    ck_assert(values->all);
    ck_assert_int_eq(values->rank, 3);
    ck_assert_int_eq(invocation.common.output, OUTPUT_JSON);
    ck_assert_double_eq(invocation.common.timeout_s, 120);
    ck_assert_int_eq(invocation.argument_count, 1);
    ck_assert_str_eq(invocation.arguments[0], "j-1");
}
END_TEST

START_TEST(what_is_not_given_has_its_standard)
{
    ck_assert_int_eq(READ("j-1"), 0);
    const struct values *values = invocation.values;
    ck_assert_int_eq(values->rank, -1);
    ck_assert_ptr_null(values->file);
    ck_assert(!values->all);
    ck_assert_int_eq(invocation.common.output, OUTPUT_TABLE);
}
END_TEST

START_TEST(after_two_dashes_all_words_are_arguments)
{
    ck_assert_int_eq(READ("--", "--all"), 0);
    ck_assert_str_eq(invocation.arguments[0], "--all");
    ck_assert(!((const struct values *)invocation.values)->all);
}
END_TEST

START_TEST(a_misspelt_flag_is_answered_with_the_nearest)
{
    ck_assert_int_eq(READ("--rnak=3", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag --rnak; did you mean --rank?");
    ck_assert_int_eq(READ("--completely-else", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag --completely-else; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("-x", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -x; 'gimbal try -h' lists them");
}
END_TEST

/* In each, x is the letter that is unknown. */
START_TEST(the_letter_that_is_unknown_is_named_with_its_word)
{
    ck_assert_int_eq(READ("-xa", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -x in '-xa'; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("j-1", "-ax"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -x in '-ax'; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("-f", "-x", "j-1", "-qaxv"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -x in '-qaxv'; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("-aq", "-fx", "--rank", "1", "-ax"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -x in '-ax'; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("-a\xc3\xa9q", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text,
                      "unknown flag -\xc3\xa9 in '-a\xc3\xa9q'; 'gimbal try -h' lists them");
    ck_assert_int_eq(READ("-\xc3\xa9", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -\xc3\xa9; 'gimbal try -h' lists them");
}
END_TEST

START_TEST(a_name_with_one_dash_is_answered_with_two)
{
    ck_assert_int_eq(READ("-all", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -all; did you mean --all?");
    ck_assert_int_eq(READ("j-1", "-rank", "3"), -EINVAL); /* not -r with the value ank */
    ck_assert_pstr_eq(err.text, "unknown flag -rank; did you mean --rank?");
    ck_assert_int_eq(READ("-file=job.yaml", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -file; did you mean --file?");
    ck_assert_int_eq(READ("-qiuet", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -qiuet; did you mean --quiet?");
    ck_assert_int_eq(READ("-f", "-all", "j-1"), 0); /* a value may be anything */
    ck_assert_str_eq(((const struct values *)invocation.values)->file, "-all");
    ck_assert_int_eq(READ("--", "-all"), 0);
    ck_assert_int_eq(READ("-aqfall", "j-1"), 0);
}
END_TEST

START_TEST(a_letter_of_the_other_case_is_suggested)
{
    ck_assert_int_eq(READ("-F", "job.yaml", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -F; did you mean -f?");
    ck_assert_int_eq(READ("-aF", "job.yaml", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "unknown flag -F in '-aF'; did you mean -f?");
}
END_TEST

START_TEST(a_value_that_letters_do_not_take_or_lack_is_named)
{
    ck_assert_int_eq(READ("-qa=yes", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "-a takes no value, and '-qa=yes' has one");
    ck_assert_int_eq(READ("j-1", "-qf"), -EINVAL);
    ck_assert_pstr_eq(err.text, "-f needs FILE");
    ck_assert_int_eq(READ("--=x", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "'--=x' names no flag; 'gimbal try -h' lists them");
}
END_TEST

START_TEST(a_beginning_is_enough_unless_there_are_two)
{
    ck_assert_int_eq(READ("--fi", "job.yaml", "j-1"), 0);
    ck_assert_str_eq(((const struct values *)invocation.values)->file, "job.yaml");
    ck_assert_int_eq(READ("--ver", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "--ver is the beginning of more than one flag; write it out");
}
END_TEST

START_TEST(a_wrong_value_is_answered_with_what_is_right)
{
    ck_assert_int_eq(READ("--rank", "-2", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text, "--rank '-2' must be a whole number, at least 0");
    ck_assert_int_eq(READ("--rank", "3x", "j-1"), -EINVAL);
    ck_assert_int_eq(READ("--rank", "99999999999999999999", "j-1"), -EINVAL);
    ck_assert_int_eq(READ("-o", "yaml", "j-1"), -EINVAL);
    ck_assert_pstr_eq(
        err.text, "--output 'yaml' is unknown; known: table, wide, name, json, jsonl, svg, csv");
    ck_assert_int_eq(READ("--timeout", "3", "j-1"), -EINVAL);
    ck_assert_pstr_eq(err.text,
                      "--timeout: '3' is not a duration: write a number and us, ms, s, m, h or d");
}
END_TEST

START_TEST(a_time_is_more_than_none_and_has_an_end)
{
    static const char *const wrong[] = {"0s", "501h", "99999999999999h"};
    ck_assert_int_eq(READ("--timeout", "500h", "j-1"), 0);
    ck_assert_int_eq(READ("--timeout", "1us", "j-1"), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char words[128];
        snprintf(words, sizeof words, "--timeout '%s' must be more than zero, and at most 500h",
                 wrong[i]);
        ck_assert_int_eq(READ("--timeout", wrong[i], "j-1"), -EINVAL);
        ck_assert_str_eq(err.text, words);
    }
}
END_TEST

START_TEST(a_size_is_one_that_a_job_file_may_have)
{
    ck_assert_int_eq(READ("--room", "16GiB", "j-1"), 0);
    ck_assert_uint_eq(((const struct values *)invocation.values)->room, (uint64_t)16 << 30);
    ck_assert_int_eq(READ("--room", "3", "j-1"), -EINVAL);
    ck_assert_str_eq(err.text, "--room '3' must be a size with its unit, 1MiB to 1024TiB");
    ck_assert_int_eq(READ("--room", "1025TiB", "j-1"), -EINVAL);
    ck_assert_int_eq(READ("--room", "-3", "j-1"), -EINVAL);
    ck_assert_str_eq(err.text,
                     "--room: '-3' is not a size: write a number and B, KiB, MiB, GiB or TiB");
}
END_TEST

START_TEST(a_value_that_is_missing_or_too_many_is_named)
{
    ck_assert_int_eq(READ("j-1", "--file"), -EINVAL);
    ck_assert_pstr_eq(err.text, "--file needs FILE");
    ck_assert_int_eq(READ("j-1", "-f"), -EINVAL);
    ck_assert_pstr_eq(err.text, "-f needs FILE");
    ck_assert_int_eq(READ("j-1", "--all=yes"), -EINVAL);
    ck_assert_pstr_eq(err.text, "--all takes no value");
}
END_TEST

START_TEST(arguments_are_counted)
{
    ck_assert_int_eq(READ("-a"), -EINVAL);
    ck_assert_pstr_eq(err.text, "needs JOB");
    ck_assert_int_eq(READ("j-1", "j-2"), -EINVAL);
    ck_assert_pstr_eq(err.text, "'j-2' is one argument too many");
}
END_TEST

START_TEST(a_shared_flag_without_effect_is_refused)
{
    ck_assert_int_eq(READ("j-1", "--watch"), -EINVAL);
    ck_assert_pstr_eq(err.text, "does not take --watch");
    ck_assert_int_eq(READ("j-1", "--dry-run"), -EINVAL);
    ck_assert_int_eq(READ("j-1", "-q"), 0);
}
END_TEST

START_TEST(help_needs_nothing_else)
{
    ck_assert_int_eq(READ("-h"), 0);
    ck_assert(invocation.common.help);
}
END_TEST

START_TEST(help_names_drawings_where_there_are_any)
{
    static const unsigned takes[] = {TAKES_OUTPUT, TAKES_OUTPUT | TAKES_DRAWING};
    for (size_t i = 0; i < 2; i++) {
        char text[2048] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        options_print_common(takes[i], out);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_ptr_nonnull(strstr(text, "--output FORMAT"));
        ck_assert_int_eq(strstr(text, "svg") != NULL, i == 1);
    }
}
END_TEST

START_TEST(flags_in_front_of_the_command_are_read)
{
    struct common common = {0};
    int next;
    char *argv[] = {"gimbal", "-o", "wide", "--address", "tcp://127.0.0.1:1", "jobs", "-a", NULL};
    ck_assert_int_eq(options_read_common(7, argv, &common, &next, &err), 0);
    ck_assert_int_eq(common.output, OUTPUT_WIDE);
    ck_assert_str_eq(common.address, "tcp://127.0.0.1:1");
    ck_assert_str_eq(argv[next], "jobs");
}
END_TEST

START_TEST(commands_are_in_order_and_found_by_name_and_alias)
{
    for (size_t i = 0; commands[i]; i++) {
        if (i > 0)
            ck_assert_int_lt(strcmp(commands[i - 1]->name, commands[i]->name), 0);
        ck_assert_ptr_eq(command_find(commands, commands[i]->name), commands[i]);
        if (commands[i]->alias)
            ck_assert_ptr_eq(command_find(commands, commands[i]->alias), commands[i]);
        ck_assert(commands[i]->run || commands[i]->below);
    }
    ck_assert_ptr_null(command_find(commands, "nodse"));
    ck_assert_str_eq(command_nearest(commands, "nodse"), "nodes");
    ck_assert_ptr_null(command_nearest(commands, "frobnicate"));
}
END_TEST

START_TEST(commands_of_two_words_are_in_order_and_found_below_the_first)
{
    for (size_t i = 0; commands[i]; i++)
        for (size_t j = 0; commands[i]->below && commands[i]->below[j]; j++) {
            const struct command *below = commands[i]->below[j];
            size_t length = strlen(commands[i]->name);
            ck_assert_mem_eq(below->name, commands[i]->name, length);
            ck_assert_int_eq(below->name[length], ' ');
            ck_assert_ptr_eq(command_find_below(commands[i], below->name + length + 1), below);
            if (j > 0)
                ck_assert_int_lt(strcmp(commands[i]->below[j - 1]->name, below->name), 0);
        }
    ck_assert_ptr_null(command_find_below(&command_plan, "plan show"));
    ck_assert_str_eq(command_nearest_below(&command_plan, "expalin"), "explain");
    ck_assert_str_eq(command_nearest_below(&command_plan, "shwo"), "show");
    ck_assert_ptr_null(command_find_below(&command_jobs, "show"));
    ck_assert_ptr_null(command_nearest_below(&command_jobs, "show"));
}
END_TEST

/* -o FILE of a command that writes a file comes before the -o FORMAT of all. */
static bool is_file(const struct flag *flag)
{
    return strcmp(flag->name, "to") == 0 && flag->letter == 'o';
}

static void check_flags(const struct command *of)
{
    for (const struct flag *flag = of->flags; flag && flag->name; flag++) {
        for (const struct flag *other = common_flags; other->name; other++) {
            ck_assert_str_ne(flag->name, other->name);
            bool both = !(common_flag_takes(other) & ~of->takes);
            ck_assert(!flag->letter || !both || flag->letter != other->letter || is_file(flag));
        }
        for (const struct flag *other = of->flags; other != flag; other++) {
            ck_assert_str_ne(flag->name, other->name);
            ck_assert(!flag->letter || flag->letter != other->letter);
        }
    }
}

/* getopt takes the first of two flags of one name: the second would never be read. */
START_TEST(a_file_to_write_comes_before_the_format)
{
    char *words[] = {"pack", "-o", "corpus.bin", "--output", "json", "text", NULL}, *help = NULL;
    size_t size = 0;
    invocation = (struct invocation){0};
    ck_assert_int_eq(options_read(&command_data_pack, 6, words, &invocation, &err), 0);
    ck_assert_str_eq(*(const char *const *)invocation.values, "corpus.bin");
    ck_assert_int_eq(invocation.common.output, OUTPUT_JSON);
    ck_assert_ptr_null(invocation.common.output_path);
    options_finish(&invocation);
    FILE *out = open_memstream(&help, &size);
    options_print_command(&command_data_pack, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(help, "  -o, --to FILE"));
    ck_assert_ptr_nonnull(strstr(help, "      --output FORMAT"));
    free(help);
}
END_TEST

START_TEST(no_command_has_a_flag_twice)
{
    for (size_t i = 0; commands[i]; i++) {
        check_flags(commands[i]);
        for (size_t j = 0; commands[i]->below && commands[i]->below[j]; j++)
            check_flags(commands[i]->below[j]);
    }
}
END_TEST

SUITE(options)
{
    TCase *reading = tcase_create("reading"), *table = tcase_create("table");
    tcase_add_checked_fixture(reading, NULL, finish);
    tcase_add_test(reading, flags_and_arguments_come_in_any_order);
    tcase_add_test(reading, what_is_not_given_has_its_standard);
    tcase_add_test(reading, after_two_dashes_all_words_are_arguments);
    tcase_add_test(reading, a_misspelt_flag_is_answered_with_the_nearest);
    tcase_add_test(reading, the_letter_that_is_unknown_is_named_with_its_word);
    tcase_add_test(reading, a_name_with_one_dash_is_answered_with_two);
    tcase_add_test(reading, a_letter_of_the_other_case_is_suggested);
    tcase_add_test(reading, a_value_that_letters_do_not_take_or_lack_is_named);
    tcase_add_test(reading, a_beginning_is_enough_unless_there_are_two);
    tcase_add_test(reading, a_wrong_value_is_answered_with_what_is_right);
    tcase_add_test(reading, a_time_is_more_than_none_and_has_an_end);
    tcase_add_test(reading, a_size_is_one_that_a_job_file_may_have);
    tcase_add_test(reading, a_value_that_is_missing_or_too_many_is_named);
    tcase_add_test(reading, arguments_are_counted);
    tcase_add_test(reading, a_shared_flag_without_effect_is_refused);
    tcase_add_test(reading, help_needs_nothing_else);
    tcase_add_test(reading, help_names_drawings_where_there_are_any);
    tcase_add_test(reading, flags_in_front_of_the_command_are_read);
    tcase_add_test(table, commands_are_in_order_and_found_by_name_and_alias);
    tcase_add_test(table, commands_of_two_words_are_in_order_and_found_below_the_first);
    tcase_add_test(table, no_command_has_a_flag_twice);
    tcase_add_test(table, a_file_to_write_comes_before_the_format);
    return suite_run("options", reading, table, NULL);
}
