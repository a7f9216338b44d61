/* test_explain.c - `gimbal explain`: the keys of files, as people and programs ask for them. */
#include "tests/cluster/command.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <string.h>

static struct command command;

static int run(const char *key, const char *format)
{
    const char *const words[] = {GIMBAL, "explain", key, format ? "-o" : NULL, format, NULL};
    command_start(&command, words);
    return command_finish(&command);
}

START_TEST(a_key_is_told_with_its_values_and_its_default)
{
    ck_assert_int_eq(run("train.clip", NULL), 0);
    ck_assert_str_eq(command.out,
                     "train.clip                   the largest allowed norm of the gradient; 0: no "
                     "clipping\n"
                     "                             a number (no unit), 0 to 1000000; default "
                     "1.0\n");
}
END_TEST

START_TEST(a_section_is_told_with_all_that_is_in_it)
{
    ck_assert_int_eq(run("job.plan", "json"), 0);
    json_t *told = json_loads(command.out, 0, NULL);
    json_t *keys = json_object_get(told, "keys");
    static const char *const expected[] = {
        "plan",
        "plan.objective",
        "plan.memory",
        "plan.search",
        "plan.schedule",
        "plan.overlap",
        "plan.pin",
        "plan.pin.dp",
        "plan.pin.tp",
        "plan.pin.pp",
        "plan.pin.micro_batches",
        "plan.forbid",
        "plan.forbid.roles",
        "plan.forbid.zero",
        "plan.forbid.recompute",
    };
    size_t count = sizeof expected / sizeof *expected;
    ck_assert_uint_eq(json_array_size(keys), count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(keys, i), "key")),
                         expected[i]);
    json_decref(told);
}
END_TEST

START_TEST(a_cluster_file_is_told_by_its_name)
{
    ck_assert_int_eq(run("cluster.nodes.devices.flops", NULL), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "required; a speed with its unit"));
}
END_TEST

START_TEST(a_key_that_is_none_is_answered_with_the_nearest)
{
    ck_assert_int_eq(run("train.step", NULL), 65);
    ck_assert_str_eq(command.err, "gimbal explain: a job file has no key 'train.step'; did you "
                                  "mean 'train.steps'?\n");
    ck_assert_int_eq(run("train.steps.more", NULL), 65);
    ck_assert_int_eq(run("train..", NULL), 65);
    ck_assert_int_eq(run(".", NULL), 65);
}
END_TEST

SUITE(explain)
{
    TCase *tcase = tcase_create("explain");
    tcase_add_test(tcase, a_key_is_told_with_its_values_and_its_default);
    tcase_add_test(tcase, a_section_is_told_with_all_that_is_in_it);
    tcase_add_test(tcase, a_cluster_file_is_told_by_its_name);
    tcase_add_test(tcase, a_key_that_is_none_is_answered_with_the_nearest);
    return suite_run("explain", tcase, NULL);
}
