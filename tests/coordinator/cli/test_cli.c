/* test_cli.c - what the command prints, and how it ends. */
#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/machine.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/progress.h"
#include "coordinator/cli/tables.h"
#include "coordinator/resources/drills.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is printed between begin and end; printed is freed by the next begin. */
static char *printed;
static size_t printed_size;

static FILE *begin(void)
{
    free(printed);
    printed = NULL;
    return open_memstream(&printed, &printed_size);
}

static void finish(void)
{
    free(printed);
    printed = NULL;
}

START_TEST(columns_are_as_wide_as_their_widest_cell)
{
    static const struct column columns[] = {
        {"JOB"}, {"LOSS", .right = true}, {"USER", .wide = true}, {"PLAN"}};
    struct table *table = table_create(columns, 4);
    for (int i = 0; i < 2; i++) {
        table_add(table, "j-%d", i ? 100 : 1);
        table_add(table, "%.1f", i ? 12.25 : 3.5);
        table_add(table, "%s", "ann");
        table_add(table, "%s", i ? "pp2·dp2 m1" : "");
    }
    FILE *out = begin();
    table_print(table, false, true, out);
    fclose(out);
    ck_assert_str_eq(printed, "JOB    LOSS  PLAN\n"
                              "j-1     3.5  -\n"
                              "j-100  12.2  pp2·dp2 m1\n");
    out = begin();
    table_print(table, true, false, out);
    fclose(out);
    ck_assert_str_eq(printed, "j-1     3.5  ann  -\n"
                              "j-100  12.2  ann  pp2·dp2 m1\n");
    table_destroy(table);
}
END_TEST

START_TEST(a_cell_cannot_break_its_line)
{
    static const struct column columns[] = {{"REASON"}};
    struct table *table = table_create(columns, 1);
    table_add(table, "%s", "two\nlines\033[31m");
    FILE *out = begin();
    table_print(table, false, false, out);
    fclose(out);
    ck_assert_str_eq(printed, "two lines [31m\n");
    table_destroy(table);
}
END_TEST

START_TEST(long_tables_are_cut_and_say_so)
{
    FILE *out = begin();
    output_print_rows("HEAD\na\nb\nc\n", 2, true, out);
    fclose(out);
    ck_assert_str_eq(printed, "HEAD\na\nb\nand 1 more\n");
    out = begin();
    output_print_rows("HEAD\na\nb\nc\n", 0, true, out);
    fclose(out);
    ck_assert_str_eq(printed, "HEAD\na\nb\nc\n");
    out = begin();
    output_print_rows("HEAD\na\nb\nc\n", 2, false, out);
    fclose(out);
    ck_assert_str_eq(printed, "a\nb\nand 1 more\n");
}
END_TEST

START_TEST(what_json_has_no_number_for_is_null)
{
    json_t *object = json_pack("{s:o, s:o, s:o}", "loss", resource_number(2.5), "norm",
                               resource_number(INFINITY), "heldout", resource_number(NAN));
    ck_assert_ptr_nonnull(object);
    ck_assert(json_is_real(json_object_get(object, "loss")));
    ck_assert(json_is_null(json_object_get(object, "norm")));
    ck_assert(json_is_null(json_object_get(object, "heldout")));
    json_decref(object);
}
END_TEST

START_TEST(every_object_has_its_version_and_kind)
{
    json_error_t error;
    for (int output = OUTPUT_JSON; output <= OUTPUT_JSONL; output++) {
        FILE *out = begin();
        output_print_object((enum output)output,
                            resource_object("Thing", json_pack("{s:f}", "time_s", 0.1)), out);
        fclose(out);
        json_t *json = json_loads(printed, 0, &error);
        ck_assert_ptr_nonnull(json);
        ck_assert_str_eq(json_string_value(json_object_get(json, "apiVersion")), "gimbal/v1");
        ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), "Thing");
        ck_assert_double_eq(json_real_value(json_object_get(json, "time_s")), 0.1);
        json_decref(json);
        char *newline = strchr(printed, '\n');
        ck_assert_int_eq(newline[1] == '\0', output == OUTPUT_JSONL);
    }
}
END_TEST

static Gimbal__JobStatus job_status(void)
{
    Gimbal__JobStatus job = GIMBAL__JOB_STATUS__INIT;
    job.job = "j-7";
    job.name = "fortunes";
    job.state = GIMBAL__JOB_STATUS__STATE__RUNNING;
    job.step = 25;
    job.step_count = 100;
    job.loss = 2.5;
    job.step_time_s = 2;
    job.tokens_per_s = 12345;
    job.plan_id = "p-1";
    return job;
}

START_TEST(a_job_is_a_row_and_an_object)
{
    Gimbal__JobStatus job = job_status(), *jobs[] = {&job};
    struct common common = {.output = OUTPUT_TABLE};
    FILE *out = begin();
    jobtable_print(&common, jobs, 1, out);
    fclose(out);
    ck_assert_str_eq(printed,
                     "JOB  NAME      STATE    PROGRESS    ETA   LOSS  TOK/S  PLAN  REASON\n"
                     "j-7  fortunes  RUNNING     25.0%  2m30s  2.500    12k  p-1   -\n");
    common.output = OUTPUT_JSON;
    out = begin();
    jobtable_print(&common, jobs, 1, out);
    fclose(out);
    json_t *json = json_loads(printed, 0, NULL);
    const char *kind, *state;
    double eta_s;
    json_int_t step;
    ck_assert_int_eq(json_unpack(json, "{s:s, s:[{s:s, s:F, s:I}]}", "kind", &kind, "jobs", "state",
                                 &state, "eta_s", &eta_s, "step", &step),
                     0);
    ck_assert_str_eq(kind, "JobList");
    ck_assert_str_eq(state, "RUNNING");
    ck_assert_double_eq(eta_s, 150);
    ck_assert_int_eq(step, 25);
    json_decref(json);
}
END_TEST

START_TEST(a_job_without_a_step_shows_no_numbers)
{
    Gimbal__JobStatus job = GIMBAL__JOB_STATUS__INIT, *jobs[] = {&job};
    struct common common = {.no_headers = true};
    job.job = "j-8";
    job.name = "x";
    job.state = GIMBAL__JOB_STATUS__STATE__PENDING;
    job.reason = "needs 4 devices";
    FILE *out = begin();
    jobtable_print(&common, jobs, 1, out);
    fclose(out);
    ck_assert_str_eq(printed, "j-8  x  PENDING  -  -  -  -  -  needs 4 devices\n");
}
END_TEST

/* Whoever drains a node says why, in bytes of his own. */
START_TEST(an_event_cannot_command_the_terminal)
{
    Gimbal__Event event = GIMBAL__EVENT__INIT;
    struct progress progress;
    event.kind = (char *)"node-draining";
    event.text = (char *)"node a: \x1b[2J\xc2\x9b"
                         "2J\x7f";
    FILE *out = begin();
    history_print(&event, out);
    progress_open(&progress, out, false);
    progress_note(&progress, "%s", event.text);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(printed, "node a: ?[2J??2J?\nnode a: ?[2J??2J?\n"));
}
END_TEST

START_TEST(the_line_is_that_of_the_manual)
{
    char line[PROGRESS_TEXT_SIZE];
    struct progress_state state = {.name = "gpt2-124m",
                                   .step = 1240,
                                   .step_count = 19073,
                                   .loss = 4.182,
                                   .heldout_loss = NAN,
                                   .tokens_per_s = 411000,
                                   .memory_bytes = (uint64_t)(18.3 * 0x1p30),
                                   .memory_bytes_max = (uint64_t)(22.1 * 0x1p30),
                                   .plan = "p-7f3a pp2·tp2·dp2",
                                   .step_time_s = 0.6463};
    ck_assert_str_eq(progress_format(line, sizeof line, &state),
                     "gpt2-124m  step 1240/19073  6.5%  loss 4.182  411k tok/s  18.3/22.1 GiB  "
                     "p-7f3a pp2·tp2·dp2  ETA 3h12m");
}
END_TEST

START_TEST(what_is_not_known_is_left_out)
{
    char line[PROGRESS_TEXT_SIZE];
    struct progress_state state = {.name = "x", .step_count = 10, .loss = NAN, .heldout_loss = NAN};
    ck_assert_str_eq(progress_format(line, sizeof line, &state), "x  step 0/10  0.0%");
    state.step = 10;
    state.heldout_loss = 2.25;
    state.step_time_s = 1;
    ck_assert_str_eq(progress_format(line, sizeof line, &state),
                     "x  step 10/10  100.0%  held-out 2.250");
}
END_TEST

START_TEST(counts_have_three_digits_at_most)
{
    char text[32];
    ck_assert_str_eq(units_print_count(text, sizeof text, 987), "987");
    ck_assert_str_eq(units_print_count(text, sizeof text, 999.7), "1.0k");
    ck_assert_str_eq(units_print_count(text, sizeof text, 9940), "9.9k");
    ck_assert_str_eq(units_print_count(text, sizeof text, 9960), "10k");
    ck_assert_str_eq(units_print_count(text, sizeof text, 999600), "1.0M");
}
END_TEST

START_TEST(what_is_cleared_leaves_no_line_of_its_own)
{
    struct progress progress;
    FILE *out = tmpfile();
    char text[128] = "";
    progress_open(&progress, out, false);
    progress_show(&progress, "searching: 2 s", 0);
    progress_show(&progress, "searching: 3 s", PROGRESS_LINE_S / 2);
    progress_clear(&progress);
    progress_close(&progress);
    rewind(out);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, out), 0);
    fclose(out);
    ck_assert_str_eq(text, "searching: 2 s\n");
}
END_TEST

START_TEST(off_a_terminal_whole_lines_come_now_and_then)
{
    struct progress progress;
    struct progress_state state = {.name = "x", .step_count = 4, .loss = NAN, .heldout_loss = NAN};
    FILE *out = tmpfile();
    char text[512] = "";
    progress_open(&progress, out, false);
    for (state.step = 1; state.step <= 3; state.step++)
        progress_update(&progress, &state, (double)state.step * PROGRESS_LINE_S / 2);
    progress_note(&progress, "node-c lost");
    state.step = 4;
    progress_update(&progress, &state, 1.6 * PROGRESS_LINE_S);
    progress_close(&progress);
    rewind(out);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, out), 0);
    fclose(out);
    ck_assert_str_eq(text, "x  step 1/4  25.0%\n"
                           "x  step 3/4  75.0%\n"
                           "node-c lost\n"
                           "x  step 4/4  100.0%\n");
}
END_TEST

START_TEST(what_has_not_changed_is_not_told_again)
{
    struct progress progress;
    struct progress_state state = {
        .name = "x", .step = 4, .step_count = 4, .loss = NAN, .heldout_loss = NAN};
    char text[256] = "";
    FILE *out = tmpfile();
    progress_open(&progress, out, false);
    progress_update(&progress, &state, 1);
    progress_update(&progress, &state, 2);
    progress_close(&progress);
    rewind(out);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, out), 0);
    fclose(out);
    ck_assert_str_eq(text, "x  step 4/4  100.0%\n");
}
END_TEST

START_TEST(quiet_says_nothing)
{
    struct progress progress;
    struct progress_state state = {.name = "x", .loss = NAN, .heldout_loss = NAN};
    FILE *out = tmpfile();
    progress_open(&progress, out, true);
    progress_update(&progress, &state, 1);
    progress_note(&progress, "node-c lost");
    progress_close(&progress);
    ck_assert_int_eq(ftell(out), 0);
    fclose(out);
}
END_TEST

static char *cut(const size_t *cores, size_t core_count, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < core_count; i++)
        CPU_SET(cores[i], &set);
    return machine_cpusets(&set, count);
}

START_TEST(cores_are_cut_evenly)
{
    static const struct {
        size_t cores[8], core_count;
        int count;
        const char *sets;
    } cases[] = {
        {{0, 1, 2, 3}, 4, 2, "0-1;2-3"},
        {{0, 1, 2, 3}, 4, 4, "0;1;2;3"},
        {{0, 1, 2}, 3, 2, "0;1-2"},
        {{1, 4, 5, 9}, 4, 2, "1,4;5,9"},
        {{0, 1}, 2, 3, "0;1;0"}, /* too few: in turn */
        {{6}, 1, 1, "6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *sets = cut(cases[i].cores, cases[i].core_count, cases[i].count);
        ck_assert_str_eq(sets, cases[i].sets);
        free(sets);
    }
}
END_TEST

START_TEST(every_status_has_its_exit_code)
{
    ck_assert_int_eq(exit_of_status(RPC_OK), EXIT_DONE);
    for (int status = RPC_OK + 1; status < RPC_STATUS_COUNT; status++)
        ck_assert_int_ne(exit_of_status((enum rpc_status)status), EXIT_DONE);
    ck_assert_int_eq(exit_of_status(RPC_UNAVAILABLE), 69);
    ck_assert_int_eq(exit_of_status(RPC_INVALID_ARGUMENT), 65);
    ck_assert_int_eq(exit_of_status(RPC_DEADLINE_EXCEEDED), 124);
    ck_assert_int_eq(exit_of_status(RPC_FAILED_PRECONDITION), 73);
    ck_assert_int_eq(exit_of_status(RPC_PERMISSION_DENIED), 77);
    ck_assert_int_eq(exit_of_status((enum rpc_status)999), EXIT_FAILED);
    ck_assert_int_eq(exit_of_errno(0), EXIT_DONE);
    ck_assert_int_eq(exit_of_errno(-EINVAL), 65);
    ck_assert_int_eq(exit_of_errno(-ENAMETOOLONG), 65);
    ck_assert_int_eq(exit_of_errno(-ELOOP), 65);
    ck_assert_int_eq(exit_of_errno(-ENOSPC), 74);
    ck_assert_int_eq(exit_of_errno(-EXDEV), 1);
}
END_TEST

/* Completion offers what is in the usage: tests/cluster/test_completion.py. */
START_TEST(every_fault_of_a_drill_is_in_the_usage)
{
    char choice[256] = "JOB ";
    const struct drill_fault *fault;
    for (int i = 0; (fault = drill_fault((Gimbal__DrillFault)i)); i++) {
        size_t chosen = strlen(choice);
        snprintf(choice + chosen, sizeof choice - chosen, "%s%s", i ? "|" : "", fault->name);
    }
    ck_assert_str_eq(command_drill.arguments, choice);
}
END_TEST

SUITE(cli)
{
    TCase *output = tcase_create("output"), *progress = tcase_create("progress"),
          *other = tcase_create("other");
    tcase_add_checked_fixture(output, NULL, finish);
    tcase_add_test(output, columns_are_as_wide_as_their_widest_cell);
    tcase_add_test(output, a_cell_cannot_break_its_line);
    tcase_add_test(output, long_tables_are_cut_and_say_so);
    tcase_add_test(output, what_json_has_no_number_for_is_null);
    tcase_add_test(output, every_object_has_its_version_and_kind);
    tcase_add_test(output, a_job_is_a_row_and_an_object);
    tcase_add_test(output, a_job_without_a_step_shows_no_numbers);
    tcase_add_test(output, an_event_cannot_command_the_terminal);
    tcase_add_test(progress, the_line_is_that_of_the_manual);
    tcase_add_test(progress, what_is_not_known_is_left_out);
    tcase_add_test(progress, counts_have_three_digits_at_most);
    tcase_add_test(progress, what_is_cleared_leaves_no_line_of_its_own);
    tcase_add_test(progress, off_a_terminal_whole_lines_come_now_and_then);
    tcase_add_test(progress, what_has_not_changed_is_not_told_again);
    tcase_add_test(progress, quiet_says_nothing);
    tcase_add_test(other, cores_are_cut_evenly);
    tcase_add_test(other, every_status_has_its_exit_code);
    tcase_add_test(other, every_fault_of_a_drill_is_in_the_usage);
    return suite_run("cli", output, progress, other, NULL);
}
