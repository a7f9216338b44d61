/* test_exposition.c - figures in Prometheus's text format. */
#include "coordinator/pages/exposition.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct exposition *exposition;

static void setup(void)
{
    exposition = exposition_create();
}

static void is(const char *expected)
{
    size_t size;
    char *text = exposition_finish(exposition, &size);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(size, strlen(expected));
    free(text);
}

START_TEST(a_family_says_what_it_is_and_has_a_sample_for_each_set_of_labels)
{
    exposition_family(exposition, "gimbal_nodes", EXPOSITION_GAUGE, "Nodes by state.");
    exposition_add(exposition, 3, "state", "ALIVE", NULL);
    exposition_add(exposition, 0.5, "state", "LOST", "kind", "cpu", NULL);
    exposition_family(exposition, "gimbal_events_total", EXPOSITION_COUNTER, "Events.");
    exposition_add(exposition, 123456789012345, NULL);
    is("# HELP gimbal_nodes Nodes by state.\n"
       "# TYPE gimbal_nodes gauge\n"
       "gimbal_nodes{state=\"ALIVE\"} 3\n"
       "gimbal_nodes{state=\"LOST\",kind=\"cpu\"} 0.5\n"
       "# HELP gimbal_events_total Events.\n"
       "# TYPE gimbal_events_total counter\n"
       "gimbal_events_total 123456789012345\n");
}
END_TEST

START_TEST(a_label_may_be_any_text)
{
    exposition_family(exposition, "x", EXPOSITION_GAUGE, "X.");
    exposition_add(exposition, 1, "name", "a \"b\\c\"\nd \u00b7", NULL);
    is("# HELP x X.\n# TYPE x gauge\nx{name=\"a \\\"b\\\\c\\\"\\nd \u00b7\"} 1\n");
}
END_TEST

START_TEST(what_is_no_number_is_said_so)
{
    exposition_family(exposition, "x", EXPOSITION_GAUGE, "X.");
    exposition_add(exposition, NAN, NULL);
    exposition_add(exposition, INFINITY, "a", "1", NULL);
    exposition_add(exposition, -INFINITY, "a", "2", NULL);
    is("# HELP x X.\n# TYPE x gauge\nx NaN\nx{a=\"1\"} +Inf\nx{a=\"2\"} -Inf\n");
}
END_TEST

START_TEST(a_histogram_is_a_summary_in_base_units)
{
    struct histogram histogram = {0};
    exposition_family(exposition, "t_seconds", EXPOSITION_SUMMARY, "T.");
    exposition_add_summary(exposition, &histogram, 1e-3, NULL, NULL);
    for (uint64_t value = 1; value <= 4; value++)
        histogram_add(&histogram, value);
    exposition_add_summary(exposition, &histogram, 1e-3, "method", "Submit");
    is("# HELP t_seconds T.\n# TYPE t_seconds summary\n"
       "t_seconds{quantile=\"0.5\"} NaN\n"
       "t_seconds{quantile=\"0.99\"} NaN\n"
       "t_seconds_sum 0\n"
       "t_seconds_count 0\n"
       "t_seconds{method=\"Submit\",quantile=\"0.5\"} 0.002\n"
       "t_seconds{method=\"Submit\",quantile=\"0.99\"} 0.004\n"
       "t_seconds_sum{method=\"Submit\"} 0.01\n"
       "t_seconds_count{method=\"Submit\"} 4\n");
}
END_TEST

START_TEST(a_process_tells_what_it_takes)
{
    size_t size;
    exposition_add_process(exposition, 1.5e9);
    char *text = exposition_finish(exposition, &size);
    ck_assert_ptr_nonnull(strstr(text, "\nprocess_start_time_seconds 1500000000\n"));
    for (const char *const *name =
             (const char *const[]){"process_cpu_seconds_total", "process_resident_memory_bytes",
                                   "process_open_fds", "process_max_fds", NULL};
         *name; name++) {
        char line[64];
        snprintf(line, sizeof line, "\n%s ", *name);
        const char *found = strstr(text, line);
        ck_assert_msg(found != NULL, "no %s in %s", *name, text);
        ck_assert_double_ge(strtod(found + strlen(line), NULL), 0);
    }
    free(text);
}
END_TEST

SUITE(exposition)
{
    TCase *tcase = tcase_create("exposition");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_family_says_what_it_is_and_has_a_sample_for_each_set_of_labels);
    tcase_add_test(tcase, a_label_may_be_any_text);
    tcase_add_test(tcase, what_is_no_number_is_said_so);
    tcase_add_test(tcase, a_histogram_is_a_summary_in_base_units);
    tcase_add_test(tcase, a_process_tells_what_it_takes);
    return suite_run("exposition", tcase, NULL);
}
