/* test_settings.c - the coordinator's command line: every setting has a flag, which sets that. */
#include "coordinator/settings.h"

#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 8

static struct coordinator_settings values;
static struct settings *settings;
static struct coordinator_line asked;
static bool usage;
static struct error err;

/* A file of its own, whatever this machine has. */
static char path[] = "/tmp/gimbal-settings-XXXXXX";

static void setup(void)
{
    static const char text[] = "log_level: warn\n";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    settings = settings_create(coordinator_fields, &values);
}

static void teardown(void)
{
    unlink(path);
    settings_destroy(settings);
}

static int read_words(const char *first, const char *second, const char *third, const char *fourth)
{
    const char *words[] = {
        "gimbal-coordinator", "--config", path, first, second, third, fourth, NULL};
    char *argv[ARGUMENTS_MAX];
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = xstrdup(words[argc]);
    argv[argc] = NULL;
    int rc = coordinator_settings_read(settings, argc, argv, &asked, &usage, &err);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return rc;
}

/* A value that is right, and not the standard. */
static const char *example_of(const struct field *field)
{
    switch (field->kind) {
    case FIELD_TEXT:
        return field->key;
    case FIELD_DURATION:
        return field->least > 7 ? "2h" : "7s";
    case FIELD_CHOICE:
        return field->words[0];
    case FIELD_BOOLEAN:
        return "true";
    case FIELD_INTEGER:
        return "7";
    default:
        ck_abort_msg("%s: say what a value of it looks like", field->key);
    }
}

/* The settings, with those of sections. */
static struct setting {
    char path[64]; /* "retention.jobs" */
    const struct field *field;
    void *values;
} all[32];

static int list_settings(const struct field *fields, const char *above, void *from, int count)
{
    for (const struct field *field = fields; field->key; field++) {
        struct setting *setting = &all[count];
        snprintf(setting->path, sizeof setting->path, "%s%s", above, field->key);
        setting->field = field;
        setting->values = from;
        if (field->kind == FIELD_SECTION) {
            char section[64];
            snprintf(section, sizeof section, "%s.", field->key);
            count = list_settings(field->fields, section, (char *)from + field->offset, count);
        } else {
            count++;
        }
    }
    return count;
}

START_TEST(every_setting_has_a_flag_that_sets_it_alone)
{
    const struct setting *setting = &all[_i];
    const char *example = example_of(setting->field);
    char *flag = xasprintf("--%s", setting->path);
    for (char *dash = flag; (dash = strpbrk(dash, "_."));)
        *dash = '-';
    ck_assert_msg(read_words(flag, example, NULL, NULL) == 0, "%s", err.text);
    char *text = field_print(setting->field, setting->values);
    ck_assert_str_eq(text, example);
    for (const struct setting *each = all; each->field; each++)
        ck_assert_msg((strcmp(settings_origin(settings, each->path), flag) == 0) ==
                          (each == setting),
                      "%s: %s", flag, each->path);
    free(text);
    free(flag);
}
END_TEST

/* The text with its lines joined, and single blanks; to be freed. */
static char *unwrap(const char *text)
{
    char *joined = xstrdup(text), *to = joined;
    for (const char *from = text; *from; from++)
        if (!strchr(" \n", *from))
            *to++ = *from;
        else if (to > joined && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    return joined;
}

START_TEST(the_help_has_every_setting_and_fits_a_terminal)
{
    char *help = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&help, &size);
    coordinator_print_help(settings, out);
    fclose(out);
    char *said = unwrap(help);
    for (const struct setting *setting = all; setting->field; setting++) {
        const struct field *field = setting->field;
        char *flag = xasprintf("      --%s %s ", setting->path, field->value);
        for (char *low = flag; (low = strpbrk(low, "_."));)
            *low = '-';
        ck_assert_msg(strstr(help, flag) != NULL, "%s", flag);
        ck_assert_msg(strstr(said, field->about) != NULL, "%s", flag);
        free(flag);
    }
    for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
        ck_assert_msg(strcspn(line, "\n") <= 100, "%s", line);
    free(said);
    free(help);
}
END_TEST

START_TEST(a_flag_is_what_its_name_says)
{
    ck_assert_int_eq(read_words("--tls", "/bundle", "--join-tokens", "/tokens"), 0);
    ck_assert_str_eq(values.tls, "/bundle");
    ck_assert_str_eq(values.join_tokens, "/tokens");
    ck_assert_int_eq(asked.command, COORDINATOR_RUN);
    ck_assert(!values.drills);
}
END_TEST

START_TEST(what_is_no_setting_has_its_own_flag)
{
    ck_assert_int_eq(read_words("--check", NULL, NULL, NULL), 0);
    ck_assert_int_eq(asked.command, COORDINATOR_CHECK);
    ck_assert_int_eq(read_words("--version", NULL, NULL, NULL), 0);
    ck_assert_int_eq(asked.command, COORDINATOR_VERSION);
}
END_TEST

START_TEST(a_backup_is_named_by_its_flag)
{
    ck_assert_int_eq(read_words("--restore", "/backup", NULL, NULL), 0);
    ck_assert_int_eq(asked.command, COORDINATOR_RESTORE);
}
END_TEST

START_TEST(a_flag_that_is_none_or_lacks_its_value_is_named)
{
    ck_assert_int_eq(read_words("--join_tokens", "/tokens", NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "unknown flag --join_tokens; did you mean --join-tokens?");
    ck_assert(usage);
    ck_assert_int_eq(read_words("--tls", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "--tls needs a value");
    ck_assert_int_eq(read_words("-xh", "--check", NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "unknown flag -x in '-xh'; see --help");
    ck_assert_int_eq(read_words("--check", "-hx", NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "unknown flag -x in '-hx'; see --help");
    ck_assert_int_eq(read_words("-state", "/state", NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "unknown flag -state; did you mean --state?");
    ck_assert_int_eq(read_words("--check=1", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "--check takes no value");
    ck_assert_int_eq(read_words("--verbose", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "unknown flag --verbose; see --help");
    ck_assert_int_eq(read_words("tls", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(err.text, "'tls' is not a flag; see --help");
}
END_TEST

SUITE(coordinator_settings)
{
    int count = list_settings(coordinator_fields, "", &values, 0);
    TCase *tcase = tcase_create("coordinator settings");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_setting_has_a_flag_that_sets_it_alone, 0, count);
    tcase_add_test(tcase, the_help_has_every_setting_and_fits_a_terminal);
    tcase_add_test(tcase, a_flag_is_what_its_name_says);
    tcase_add_test(tcase, what_is_no_setting_has_its_own_flag);
    tcase_add_test(tcase, a_backup_is_named_by_its_flag);
    tcase_add_test(tcase, a_flag_that_is_none_or_lacks_its_value_is_named);
    return suite_run("coordinator settings", tcase, NULL);
}
