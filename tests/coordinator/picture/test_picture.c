/* test_picture.c - a step in two colours: what a plan's simulation says and what its ranks tell are
 * drawn alike, and however large a plan is, its picture is not. */
#include "coordinator/picture/picture.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/simulate.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/simulation/simulate.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 128
#define EPOCH 3

static struct profile profile;
static struct planner_device devices[DEVICES_MAX];
static struct job_config *job;
static struct graph *graph;
static struct plan *plan;
static struct planner_request request;
static struct picture *picture;
static struct trace_step step;
static struct error err;

/* `stages` of `width` ranks that divide the samples of a micro-batch. */
static void open_plan(int stages, int width, int micro_batches)
{
    static const char yaml[] = "apiVersion: gimbal/v1\n"
                               "name: small\n"
                               "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                               "data: {text: [corpus.txt]}\n"
                               "train: {steps: 3, global_batch: 4, lr: 0.001}\n";
    const struct hardware_link link = {1e-6, 1e-9};
    profile = profile_analytic(1e9, 1e9, 1, link, link);
    for (int i = 0; i < DEVICES_MAX; i++)
        devices[i] = (struct planner_device){"a/0", "a", 1 << 30, &profile};
    ck_assert_int_eq(job_config_parse(yaml, sizeof yaml - 1, "job", &job, &err), 0);
    job->train.global_batch = micro_batches * width;
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    int blocks = (int)graph->block_count;
    plan = plan_create(stages, blocks);
    for (int i = 0; i < stages; i++) {
        int first = i * blocks / stages, end = (i + 1) * blocks / stages;
        plan->stages[i].block_first = first;
        plan->stages[i].block_count = end - first;
        plan->stages[i].mesh.axes = width > 1;
        plan->stages[i].mesh.size[0] = width;
        for (int block = first; block < end; block++) {
            plan->blocks[block].stage = i;
            if (width > 1)
                plan->blocks[block].roles[0] = role_find("batch");
        }
    }
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = width;
    plan->schedule = schedule_find("1f1b");
    ck_assert_msg(plan_check(plan, graph, &err) == 0, "%s", err.text);
    request = (struct planner_request){
        .graph = graph, .job = job, .devices = devices, .device_count = stages * width};
}

static void make_picture(void)
{
    ck_assert_msg(picture_make(&request, plan, NULL, &picture, &err) == 0, "%s", err.text);
}

static void forget_step(void)
{
    for (size_t i = 0; i < step.rank_count; i++) {
        free(step.ranks[i].begin_ns);
        free(step.ranks[i].end_ns);
    }
    free(step.ranks);
    step = (struct trace_step){0};
}

static void close_plan(void)
{
    forget_step();
    picture_destroy(picture);
    plan_destroy(plan);
    graph_destroy(graph);
    job_config_destroy(job);
}

/* ---- a step as its ranks would tell of it ---- */

static void begin_step(struct program *const *programs)
{
    step = (struct trace_step){.epoch = EPOCH, .step = 4, .rank_count = (size_t)plan_ranks(plan)};
    step.ranks = xcalloc(step.rank_count, sizeof *step.ranks);
    for (size_t i = 0; i < step.rank_count; i++) {
        struct trace *trace = &step.ranks[i];
        trace->total = trace->count = program_step_count(programs[i], PROGRAM_TRAIN);
        trace->begin_ns = xcalloc(trace->count, sizeof *trace->begin_ns);
        trace->end_ns = xcalloc(trace->count, sizeof *trace->end_ns);
        trace->unix_ns = 1000000000000;
    }
}

/* The number of an instruction in its step: programs are walked as executors walk them. */
struct told {
    struct program *const *programs;
    double factor; /* of the time that was predicted */
};

static size_t number_of(const struct program *program, const struct program_cursor *wanted)
{
    struct program_cursor cursor = {0};
    size_t number = 0;
    while (program_next(program, PROGRAM_TRAIN, &cursor) &&
           (cursor.instruction != wanted->instruction || cursor.event != wanted->event))
        number++;
    return number;
}

static void tell(void *context, int rank, const struct program_cursor *cursor, double begin_s,
                 double end_s)
{
    const struct told *told = context;
    struct trace *trace = &step.ranks[rank];
    size_t number = number_of(told->programs[rank], cursor);
    ck_assert_uint_lt(number, trace->count);
    trace->begin_ns[number] = (uint64_t)llround(told->factor * begin_s * 1e9);
    trace->end_ns[number] = (uint64_t)llround(told->factor * end_s * 1e9);
}

/* As the simulation has it, so many times as long. */
static void make_step(double factor)
{
    int ranks = plan_ranks(plan);
    struct program **programs = xcalloc((size_t)ranks, sizeof *programs);
    struct pricing pricing = pricing_plain(&request);
    struct timing timing = {&pricing, pricing_seconds, pricing_slowdown};
    struct told told = {programs, factor};
    struct simulation_trace trace = {&told, tell};
    struct simulation simulation;
    for (int rank = 0; rank < ranks; rank++)
        ck_assert_int_eq(lower(graph, plan, rank, &programs[rank], &err), 0);
    begin_step(programs);
    ck_assert_int_eq(simulate((const struct program *const *)programs, ranks, PROGRAM_TRAIN,
                              &timing, &trace, &simulation, &err),
                     0);
    for (int rank = 0; rank < ranks; rank++)
        program_destroy(programs[rank]);
    free(programs);
}

/* ---- what is drawn ---- */

static size_t count_boxes(const struct picture_row *row, enum section section, int micro_batch)
{
    size_t count = 0;
    for (size_t i = 0; i < row->boxes.count; i++)
        count += row->boxes.items[i].place.lane == BOX_COMPUTE &&
                 row->boxes.items[i].place.section == section &&
                 row->boxes.items[i].place.micro_batch == micro_batch;
    return count;
}

START_TEST(a_pipeline_shows_each_micro_batch_of_each_rank)
{
    open_plan(2, 2, 4);
    make_picture();
    ck_assert_str_eq(picture->plan, plan->id);
    ck_assert_uint_eq(picture->count, 4);
    for (size_t i = 0; i < picture->count; i++) {
        const struct picture_row *row = &picture->predicted.rows[i];
        ck_assert(row->told);
        for (int m = 0; m < 4; m++) {
            ck_assert_uint_ge(count_boxes(row, SECTION_FORWARD, m), 1);
            ck_assert_uint_ge(count_boxes(row, SECTION_BACKWARD, m), 1);
        }
        ck_assert_uint_ge(count_boxes(row, SECTION_UPDATE, -1), 1);
        ck_assert_double_gt(row->bubble, 0);
        ck_assert_double_lt(row->bubble, 1);
        for (size_t b = 0; b < row->boxes.count; b++) {
            ck_assert_double_ge(row->boxes.items[b].begin_s, 0);
            ck_assert_double_le(row->boxes.items[b].end_s, picture->predicted.step_s);
        }
    }
    close_plan();
}
END_TEST

/* The plan's own figures are of the same simulation. */
START_TEST(what_is_predicted_is_what_the_plan_says)
{
    struct planner_result result = {0};
    open_plan(2, 1, 4);
    make_picture();
    ck_assert_int_eq(simulate_programs(&request, plan_copy(plan), &result, &err), 0);
    const struct plan *judged = result.candidates[0].plan;
    ck_assert_double_eq(picture->predicted.step_s, judged->predicted.step_time_s);
    ck_assert_double_eq_tol(picture->predicted.bubble, judged->predicted.bubble, 1e-9);
    candidates_finish(&result);
    close_plan();
}
END_TEST

START_TEST(a_step_that_went_as_predicted_is_drawn_as_predicted)
{
    struct picture_side measured;
    open_plan(2, 2, 4);
    make_picture();
    make_step(3);
    picture_measure(picture, &step, &measured);
    ck_assert_double_eq_tol(measured.step_s, 3 * picture->predicted.step_s, 1e-8);
    ck_assert_double_eq_tol(measured.bubble, picture->predicted.bubble, 1e-4);
    for (size_t i = 0; i < picture->count; i++) {
        const struct boxes *a = &picture->predicted.rows[i].boxes, *b = &measured.rows[i].boxes;
        ck_assert_uint_eq(a->count, b->count);
        for (size_t j = 0; j < a->count; j++) {
            ck_assert(box_place_same(&a->items[j].place, &b->items[j].place));
            ck_assert_double_eq_tol(b->items[j].begin_s, 3 * a->items[j].begin_s, 1e-8);
            ck_assert_double_eq_tol(b->items[j].end_s, 3 * a->items[j].end_s, 1e-8);
        }
    }
    picture_side_finish(&measured);
    close_plan();
}
END_TEST

START_TEST(ranks_whose_clocks_differ_are_shifted)
{
    struct picture_side measured;
    open_plan(2, 1, 2);
    make_picture();
    make_step(1);
    step.ranks[0].unix_ns += 5000000;
    picture_measure(picture, &step, &measured);
    double first_s = picture->predicted.rows[0].boxes.items[0].begin_s;
    ck_assert_double_eq_tol(measured.rows[0].boxes.items[0].begin_s, first_s + 5e-3, 1e-8);
    ck_assert_double_ge(measured.step_s, 5e-3);
    picture_side_finish(&measured);
    close_plan();
}
END_TEST

/* A long step's end may be missing, or all of a rank's. */
START_TEST(what_ranks_did_not_tell_is_counted)
{
    struct picture_side measured;
    open_plan(2, 1, 2);
    make_picture();
    make_step(1);
    step.ranks[0].count -= 3;
    size_t all = step.ranks[1].count;
    step.ranks[1].count = 0;
    picture_measure(picture, &step, &measured);
    ck_assert_uint_eq(measured.rows[0].instructions_left, 3);
    ck_assert_uint_gt(measured.rows[0].boxes.count, 0);
    ck_assert(isnan(measured.rows[0].bubble));
    ck_assert_uint_eq(measured.rows[1].instructions_left, all);
    ck_assert_uint_eq(measured.rows[1].boxes.count, 0);
    ck_assert(isnan(measured.bubble));
    picture_side_finish(&measured);
    close_plan();
}
END_TEST

START_TEST(of_many_ranks_the_first_of_each_stage_come_first)
{
    open_plan(2, 64, 1);
    make_picture();
    ck_assert_int_eq(picture->rank_count, 128);
    ck_assert_uint_eq(picture->count, PICTURE_RANKS_MAX);
    for (size_t i = 0; i < picture->count; i++) {
        ck_assert_int_eq(picture->ranks[i].stage, (int)i % 2);
        ck_assert_int_eq(picture->ranks[i].rank, (int)i % 2 * 64 + (int)i / 2);
    }
    close_plan();
}
END_TEST

/* Those of one stage that do the same at the same time are simulated once. */
START_TEST(ranks_that_are_alike_have_boxes_of_their_own)
{
    open_plan(1, 8, 2);
    make_picture();
    ck_assert_uint_eq(picture->count, 8);
    ck_assert_uint_lt(picture->outline_count, 8);
    for (size_t i = 1; i < picture->count; i++) {
        const struct boxes *boxes = &picture->predicted.rows[i].boxes;
        ck_assert_uint_gt(boxes->count, 4);
        ck_assert_ptr_ne(boxes->items, picture->predicted.rows[0].boxes.items);
    }
    close_plan();
}
END_TEST

/* Every instruction far from the one before it, on as many ranks as there are. */
START_TEST(there_are_never_more_boxes_than_are_allowed)
{
    struct picture_side measured;
    size_t told = 0, boxes = 0;
    open_plan(1, 32, 8);
    make_picture();
    make_step(1);
    for (size_t i = 0; i < step.rank_count; i++)
        for (size_t j = 0; j < step.ranks[i].count; j++) {
            step.ranks[i].begin_ns[j] = 2 * j * 1000000;
            step.ranks[i].end_ns[j] = (2 * j + 1) * 1000000;
        }
    picture_measure(picture, &step, &measured);
    for (size_t i = 0; i < measured.count; i++) {
        told += measured.rows[i].told;
        boxes += measured.rows[i].boxes.count;
        ck_assert(measured.rows[i].told || measured.rows[i].boxes.count == 0);
        ck_assert_double_gt(measured.rows[i].bubble, 0.5);
    }
    ck_assert_uint_lt(told, measured.count);
    ck_assert_uint_gt(told, 1);
    ck_assert_uint_le(boxes, PICTURE_BOXES_MAX);
    picture_side_finish(&measured);
    close_plan();
}
END_TEST

START_TEST(without_devices_what_was_measured_is_drawn)
{
    struct picture_side measured;
    const struct error why = {"node-a is gone"};
    open_plan(2, 1, 2);
    make_step(1);
    request.device_count = 0;
    ck_assert_int_eq(picture_make(&request, plan, &why, &picture, &err), 0);
    ck_assert_str_eq(picture->why.text, "node-a is gone");
    ck_assert_double_eq(picture->predicted.step_s, 0);
    ck_assert_uint_eq(picture->predicted.count, 0);
    picture_measure(picture, &step, &measured);
    ck_assert_uint_gt(measured.rows[1].boxes.count, 4);
    ck_assert_double_gt(measured.bubble, 0);
    picture_side_finish(&measured);
    close_plan();
}
END_TEST

START_TEST(a_picture_that_nobody_wants_is_not_made)
{
    atomic_bool stop = true;
    open_plan(2, 1, 2);
    request.stop = &stop;
    ck_assert_int_eq(picture_make(&request, plan, NULL, &picture, &err), -ECANCELED);
    ck_assert_ptr_null(picture);
    close_plan();
}
END_TEST

SUITE(picture)
{
    TCase *tcase = tcase_create("picture");
    tcase_add_test(tcase, a_pipeline_shows_each_micro_batch_of_each_rank);
    tcase_add_test(tcase, what_is_predicted_is_what_the_plan_says);
    tcase_add_test(tcase, a_step_that_went_as_predicted_is_drawn_as_predicted);
    tcase_add_test(tcase, ranks_whose_clocks_differ_are_shifted);
    tcase_add_test(tcase, what_ranks_did_not_tell_is_counted);
    tcase_add_test(tcase, of_many_ranks_the_first_of_each_stage_come_first);
    tcase_add_test(tcase, ranks_that_are_alike_have_boxes_of_their_own);
    tcase_add_test(tcase, there_are_never_more_boxes_than_are_allowed);
    tcase_add_test(tcase, without_devices_what_was_measured_is_drawn);
    tcase_add_test(tcase, a_picture_that_nobody_wants_is_not_made);
    return suite_run("picture", tcase, NULL);
}
