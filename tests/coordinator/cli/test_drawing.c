/* test_drawing.c - drawings have all that they are of. */
#include "common/program/lower.h"
#include "coordinator/cli/commands/plan/drawings.h"
#include "coordinator/planner/check.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES 2

static const char job_yaml[] = "apiVersion: gimbal/v1\n"
                               "name: small\n"
                               "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                               "data: {text: [corpus.txt]}\n"
                               "train: {steps: 3, global_batch: 4, lr: 0.001}\n"
                               "plan: {search: uniform}\n";

static struct profile profile;
static const struct planner_device devices[DEVICES] = {{"a/0", "a", 1 << 30, &profile},
                                                       {"a/1", "a", 1 << 30, &profile}};
static struct job_config *job;
static struct graph *graph;
static struct planner_request request;
static struct planner_result result;
static char *text;

static void setup(void)
{
    struct error err;
    const struct hardware_link link = {1e-6, 1e-9};
    profile = profile_analytic(1e9, 1e9, 1, link, link);
    ck_assert_int_eq(job_config_parse(job_yaml, sizeof job_yaml - 1, "job", &job, &err), 0);
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    request = (struct planner_request){
        .graph = graph, .job = job, .devices = devices, .device_count = DEVICES};
    ck_assert_int_eq(planner_run(&request, &result, &err), 0);
}

static void teardown(void)
{
    free(text);
    text = NULL;
    candidates_finish(&result);
    graph_destroy(graph);
    job_config_destroy(job);
}

static size_t count(const char *what)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        found++;
    return found;
}

static FILE *begin(void)
{
    static size_t size;
    return open_memstream(&text, &size);
}

START_TEST(every_plan_is_a_point_and_the_chosen_one_is_ringed)
{
    FILE *out = begin();
    frontier_draw(&result, out);
    fclose(out);
    ck_assert_uint_eq(count("<circle"), result.count + 1);
    for (size_t i = 0; i < result.count; i++)
        ck_assert_ptr_nonnull(strstr(text, result.candidates[i].plan->id));
    ck_assert_ptr_nonnull(strstr(text, "</svg>\n"));
}
END_TEST

/* Every section of every micro-batch of both stages is a box that can be pointed at. */
START_TEST(a_pipeline_is_a_lane_for_each_stage)
{
    const struct plan *plan = NULL;
    struct error err;
    for (size_t i = 0; i < result.count && !plan; i++)
        if (result.candidates[i].plan->stage_count == 2 &&
            result.candidates[i].plan->micro_batches == 4)
            plan = result.candidates[i].plan;
    ck_assert_ptr_nonnull(plan);
    FILE *out = begin();
    ck_assert_msg(lanes_draw(&request, plan, out, &err) == 0, "%s", err.text);
    fclose(out);
    for (int m = 0; m < 4; m++) {
        char title[64];
        snprintf(title, sizeof title, "<title>forward of micro-batch %d: ", m);
        ck_assert_uint_ge(count(title), 2);
        snprintf(title, sizeof title, "<title>backward of micro-batch %d: ", m);
        ck_assert_uint_ge(count(title), 2);
    }
    ck_assert_uint_eq(count(">stage "), 2);
}
END_TEST

/* The length of the step that is drawn, by where its last mark is: the axis is 1100 wide. */
static double drawn_step_s(void)
{
    double at = 0, x = 0, mark_s = svg_step(result.best->predicted.step_time_s, 8);
    int marks = 0;
    for (const char *line = text; (line = strstr(line, "<line x1=\"")); line++, marks++)
        x = strtod(line + strlen("<line x1=\""), NULL);
    at = (marks - 1) * mark_s;
    return at / ((x - 80) / 1100);
}

/* Computing and communication slow each other, and that is part of the prediction. */
START_TEST(the_step_that_is_drawn_is_the_one_that_is_predicted)
{
    struct error err;
    size_t overlapping = 0;
    profile.overlap = 1.7;
    candidates_finish(&result);
    ck_assert_int_eq(planner_run(&request, &result, &err), 0);
    for (size_t i = 0; i < result.count; i++) {
        struct plan *plan = result.candidates[i].plan;
        struct program *program;
        ck_assert_int_eq(lower(graph, plan, 0, &program, &err), 0);
        overlapping += program_overlaps(program);
        program_destroy(program);
        FILE *out = begin();
        ck_assert_msg(lanes_draw(&request, plan, out, &err) == 0, "%s", err.text);
        fclose(out);
        result.best = plan;
        ck_assert_double_eq_tol(drawn_step_s() / plan->predicted.step_time_s, 1, 1e-4);
        free(text);
        text = NULL;
    }
    ck_assert_uint_gt(overlapping, 0);
}
END_TEST

START_TEST(marks_are_round_and_not_too_many)
{
    ck_assert_double_eq_tol(svg_step(10, 5), 2, 1e-12);
    ck_assert_double_eq_tol(svg_step(0.38, 6), 0.05, 1e-12);
    ck_assert_double_eq_tol(svg_step(7000, 6), 1000, 1e-9);
}
END_TEST

START_TEST(texts_cannot_break_out)
{
    FILE *out = begin();
    svg_text(out, 0, 0, "start", "<a> & \"b\"");
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, ">&lt;a> &amp; &quot;b&quot;</text>"));
}
END_TEST

SUITE(drawing)
{
    TCase *tcase = tcase_create("drawing");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_plan_is_a_point_and_the_chosen_one_is_ringed);
    tcase_add_test(tcase, a_pipeline_is_a_lane_for_each_stage);
    tcase_add_test(tcase, the_step_that_is_drawn_is_the_one_that_is_predicted);
    tcase_add_test(tcase, marks_are_round_and_not_too_many);
    tcase_add_test(tcase, texts_cannot_break_out);
    return suite_run("drawing", tcase, NULL);
}
