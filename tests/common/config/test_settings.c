/* test_settings.c - flag over environment over file over default, each with its origin. */
#include "common/base/memory.h"
#include "common/config/settings.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct limits {
    int64_t jobs;
};

struct daemon {
    char *address, *state_dir;
    double lease;
    struct texts peers;
    struct limits limits;
};

#define AT(member, what) .key = #member, .kind = what, .offset = offsetof(struct daemon, member)

static const struct field limits_fields[] = {
    {FIELD(limits, jobs, FIELD_INTEGER), .standard = "3", .least = 1, .greatest = 9,
     .unit = "jobs"},
    {.key = NULL},
};

static const struct field daemon_fields[] = {
    {AT(address, FIELD_TEXT), .required = true},
    {AT(state_dir, FIELD_TEXT), .standard = "/var/lib/gimbal"},
    {AT(lease, FIELD_DURATION), .standard = "5s", .least = 1, .greatest = 60},
    {AT(peers, FIELD_TEXTS)},
    {AT(limits, FIELD_SECTION), .fields = limits_fields},
    {.key = NULL},
};

static char path[] = "/tmp/gimbal-settings-XXXXXX";
static struct daemon values;
static struct settings *settings;

static void start(const char *text)
{
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    settings = settings_create(daemon_fields, &values);
}

static void stop(void)
{
    unlink(path);
    settings_destroy(settings);
    ck_assert_ptr_null(values.address);
}

/* As the command line says it, in one word. */
static int set_flag(const char *word, struct error *err)
{
    char program[] = "daemon", *text = xstrdup(word), *argv[] = {program, text, NULL};
    const char *argument;
    ck_assert_int_eq(settings_read_line(settings, NULL, NULL, 2, argv, &argument, NULL), 0);
    ck_assert_ptr_null(argument);
    int rc = settings_read_flags(settings, err);
    free(text);
    return rc;
}

START_TEST(each_layer_goes_over_the_one_below)
{
    start("address: file:1\nlease: 7s\nstate_dir: /file\n");
    setenv("GIMBAL_ADDRESS", "environment:1", 1);
    setenv("GIMBAL_LEASE", "8s", 1);
    ck_assert_int_eq(settings_read_file(settings, path, true, NULL), 0);
    ck_assert_int_eq(settings_read_environment(settings, NULL), 0);
    ck_assert_int_eq(set_flag("--address=flag:1", NULL), 0);
    ck_assert_int_eq(set_flag("--peers=a,b", NULL), 0);
    ck_assert_int_eq(settings_check(settings, NULL), 0);
    ck_assert_str_eq(values.address, "flag:1");
    ck_assert_double_eq(values.lease, 8);
    ck_assert_str_eq(values.state_dir, "/file");
    ck_assert_uint_eq(values.peers.count, 2);
    stop();
}
END_TEST

START_TEST(each_value_knows_where_it_came_from)
{
    start("state_dir:\n  /file\n");
    setenv("GIMBAL_ADDRESS", "environment:1", 1);
    ck_assert_int_eq(settings_read_file(settings, path, true, NULL), 0);
    ck_assert_int_eq(settings_read_environment(settings, NULL), 0);
    char *place = xasprintf("%s:2:3", path);
    ck_assert_str_eq(settings_origin(settings, "state_dir"), place);
    ck_assert_str_eq(settings_origin(settings, "address"), "GIMBAL_ADDRESS");
    ck_assert_str_eq(settings_origin(settings, "lease"), "default");
    ck_assert_int_eq(set_flag("--state-dir=/flag", NULL), 0);
    ck_assert_str_eq(settings_origin(settings, "state_dir"), "--state-dir");
    ck_assert_ptr_null(settings_origin(settings, "colour"));
    free(place);
    stop();
}
END_TEST

START_TEST(a_fault_names_the_layer_it_is_in)
{
    struct error err;
    start("lease: 0s\n");
    ck_assert_int_eq(settings_read_file(settings, path, true, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, ":1:8: lease: '0s' is out of range"));
    setenv("GIMBAL_LEASE", "5", 1);
    ck_assert_int_eq(settings_read_environment(settings, &err), -EINVAL);
    ck_assert_str_eq(err.text,
                     "GIMBAL_LEASE: '5' is not a duration: write a duration with its unit, "
                     "1s to 1m");
    ck_assert_int_eq(set_flag("--state-dir=", &err), -EINVAL);
    ck_assert_str_eq(err.text, "--state-dir: '' is empty: write a string");
    ck_assert_str_eq(settings_origin(settings, "state_dir"), "default");
    ck_assert_str_eq(values.state_dir, "/var/lib/gimbal");
    stop();
}
END_TEST

START_TEST(a_missing_setting_is_answered_with_the_ways_to_give_it)
{
    struct error err;
    start("lease: 9s\n");
    ck_assert_int_eq(settings_read_file(settings, "/proc/nonexistent/worker.yaml", false, NULL), 0);
    ck_assert_int_eq(settings_check(settings, &err), -EINVAL);
    ck_assert_str_eq(err.text,
                     "address is not set: give --address (a string), set GIMBAL_ADDRESS or "
                     "write 'address:' in /proc/nonexistent/worker.yaml");
    ck_assert_int_eq(settings_read_file(settings, "/proc/nonexistent/worker.yaml", true, &err),
                     -ENOENT);
    stop();
}
END_TEST

START_TEST(what_is_in_a_section_is_a_setting_too)
{
    struct error err;
    start("limits: {jobs: 5}\n");
    ck_assert_int_eq(values.limits.jobs, 3);
    ck_assert_str_eq(settings_origin(settings, "limits.jobs"), "default");
    ck_assert_int_eq(settings_read_file(settings, path, true, NULL), 0);
    ck_assert_int_eq(values.limits.jobs, 5);
    char *place = xasprintf("%s:1:16", path);
    ck_assert_str_eq(settings_origin(settings, "limits.jobs"), place);
    setenv("GIMBAL_LIMITS_JOBS", "6", 1);
    ck_assert_int_eq(settings_read_environment(settings, NULL), 0);
    ck_assert_int_eq(values.limits.jobs, 6);
    ck_assert_int_eq(set_flag("--limits-jobs=7", NULL), 0);
    ck_assert_int_eq(values.limits.jobs, 7);
    ck_assert_int_eq(set_flag("--limits-jobs=10", &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "--limits-jobs: '10' is out of range"));
    ck_assert_ptr_null(settings_origin(settings, "limits"));
    free(place);
    stop();
}
END_TEST

SUITE(settings)
{
    TCase *tcase = tcase_create("settings");
    tcase_add_test(tcase, each_layer_goes_over_the_one_below);
    tcase_add_test(tcase, each_value_knows_where_it_came_from);
    tcase_add_test(tcase, a_fault_names_the_layer_it_is_in);
    tcase_add_test(tcase, what_is_in_a_section_is_a_setting_too);
    tcase_add_test(tcase, a_missing_setting_is_answered_with_the_ways_to_give_it);
    return suite_run("settings", tcase, NULL);
}
