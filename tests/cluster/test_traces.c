/* test_traces.c - the timelines that gimbal writes: each rank has two tracks, what was predicted
 * and what was measured, and both have the instructions of its program, in its order. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "common/program/program.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/planner.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { PREDICTED, MEASURED, TRACKS };
#define NOT_YET 73 /* exit status: EXIT_PRECONDITION */
#define STEPS 12

static struct job_config *job;
static struct graph *graph;
static struct plan *plan;

/* The job's plan as gimbal shows it, lowered here for a rank. */
static struct program *lower_rank(int rank)
{
    struct program *program;
    struct error err;
    ck_assert_msg(lower(graph, plan, rank, &program, &err) == 0, "%s", err.text);
    return program;
}

static void read_plan(void)
{
    struct error err;
    char *text;
    ck_assert_int_eq(file_read(pair.job_path, &text, &err), 0);
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job", &job, &err), 0);
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "show", "j-1", "-o", "json"), 0);
    ck_assert_msg(plan_decode(pair.command.out, &plan, &err) == 0, "%s", err.text);
    ck_assert_int_eq(plan_ranks(plan), PAIR_NODES);
    free(text);
}

static void forget_plan(void)
{
    plan_destroy(plan);
    graph_destroy(graph);
    job_config_destroy(job);
}

static double number(const json_t *event, const char *name)
{
    const json_t *value = json_object_get(event, name);
    ck_assert_msg(json_is_number(value), "an event without %s", name);
    return json_number_value(value);
}

static const char *text(const json_t *event, const char *name)
{
    const char *value = json_string_value(json_object_get(event, name));
    ck_assert_msg(value != NULL, "an event without %s", name);
    return value;
}

static void check_event(const json_t *event, const struct program *program,
                        const struct program_cursor *cursor, double *before_us)
{
    const json_t *args = json_object_get(event, "args");
    int block = cursor->instruction->block;
    ck_assert_str_eq(text(event, "name"), instruction_name(program, cursor->instruction));
    ck_assert_str_eq(text(event, "cat"),
                     section_name(instruction_section(program, cursor->instruction)));
    ck_assert_double_eq(number(args, "micro_batch"), cursor->micro_batch);
    if (block >= 0)
        ck_assert_str_eq(text(args, "block"), graph->blocks[block].name);
    ck_assert_double_ge(number(event, "ts"), *before_us);
    ck_assert_double_ge(number(event, "dur"), 0);
    *before_us = number(event, "ts");
}

/* All events of a queue's track, in the order of the file; returns how many. */
static size_t check_queue(const json_t *events, int rank, int track, enum queue queue)
{
    struct program *program = lower_rank(rank);
    struct program_walk walk;
    double before_us = 0, length_us = 0;
    size_t i, count = 0;
    json_t *event;
    program_walk_init(&walk, program, queue);
    program_walk_begin(&walk, PROGRAM_TRAIN);
    json_array_foreach(events, i, event)
    {
        if (strcmp(text(event, "ph"), "X") != 0 || number(event, "pid") != rank ||
            number(event, "tid") != track + (queue == QUEUE_COMMUNICATION ? TRACKS : 0))
            continue;
        ck_assert_msg(program_walk_next(&walk), "more events than instructions");
        check_event(event, program, &walk.cursor, &before_us);
        length_us += number(event, "dur");
        count++;
    }
    ck_assert(!program_walk_next(&walk));
    ck_assert(count == 0 || length_us > 0);
    program_walk_finish(&walk);
    program_destroy(program);
    return count;
}

/* Both queues have what the step has. */
static void check_track(const json_t *events, int rank, int track)
{
    struct program *program = lower_rank(rank);
    size_t computed = check_queue(events, rank, track, QUEUE_COMPUTE);
    size_t moved = 0;
    if (program_overlaps(program))
        moved = check_queue(events, rank, track, QUEUE_COMMUNICATION);
    ck_assert_uint_gt(computed, 0);
    ck_assert_uint_eq(computed + moved, program_step_count(program, PROGRAM_TRAIN));
    program_destroy(program);
}

/* How many tracks have this name. */
static size_t count_tracks(const json_t *events, const char *name)
{
    size_t i, count = 0;
    json_t *event;
    json_array_foreach(events, i, event) count +=
        strcmp(text(event, "name"), "thread_name") == 0 &&
        strcmp(text(json_object_get(event, "args"), "name"), name) == 0;
    return count;
}

static json_t *read_trace(const char *path)
{
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    ck_assert_msg(root != NULL, "%s:%d: %s", path, why.line, why.text);
    ck_assert_str_eq(text(json_object_get(root, "otherData"), "plan"), plan->id);
    return root;
}

START_TEST(a_trace_has_the_instructions_of_the_program_predicted_and_measured)
{
    static struct command events;
    char *path = xasprintf("%s/trace.json", pair.folder);
    pair_write_job(PAIR_ENDLESS, "%s", "");
    pair_submit(&events);
    int code;
    do /* until all ranks have told of one and the same step */
        pair_await(&events, "\"event\":\"step\"");
    while ((code = PAIR_GIMBAL("trace", "j-1", "-o", path)) == NOT_YET);
    ck_assert_msg(code == 0, "%s", pair.command.err);
    ck_assert_msg(!strstr(pair.command.err, "there is no prediction"), "%s", pair.command.err);
    read_plan();
    json_t *root = read_trace(path), *traced = json_object_get(root, "traceEvents");
    ck_assert_uint_eq(count_tracks(traced, "predicted"), PAIR_NODES);
    ck_assert_uint_eq(count_tracks(traced, "measured"), PAIR_NODES);
    for (int rank = 0; rank < PAIR_NODES; rank++)
        for (int track = 0; track < TRACKS; track++)
            check_track(traced, rank, track);
    json_decref(root);

    ck_assert_int_eq(PAIR_GIMBAL("trace", "j-1", "-o", "/proc/nonexistent/trace.json"), 65);
    ck_assert_msg(strstr(pair.command.err, "/proc/nonexistent/trace.json"), "%s", pair.command.err);
    char *full = xasprintf("trap '' XFSZ; ulimit -f 1; exec " GIMBAL " plan trace j-1 -o %s", path);
    command_start(&pair.command, (const char *const[]){"/bin/sh", "-c", full, NULL});
    ck_assert_int_eq(command_finish(&pair.command), 65); /* EFBIG */
    ck_assert_msg(strstr(pair.command.err, "File too large"), "%s", pair.command.err);
    free(full);
    json_decref(read_trace(path)); /* the one of before is still there */
    ck_assert_int_eq(PAIR_GIMBAL("plan", "trace", "j-1", "-o", path), 0);
    root = read_trace(path);
    traced = json_object_get(root, "traceEvents");
    ck_assert_uint_eq(count_tracks(traced, "predicted"), PAIR_NODES);
    ck_assert_uint_eq(count_tracks(traced, "measured"), 0);
    for (int rank = 0; rank < PAIR_NODES; rank++)
        check_track(traced, rank, PREDICTED);
    json_decref(root);
    forget_plan();
    free(path);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}
END_TEST

/* Of a job that is over: its ranks have told of all their steps. */
START_TEST(times_are_those_of_all_steps_of_all_ranks)
{
    static struct command events;
    double ratios = 0, seconds = 0;
    size_t index;
    json_t *item;
    pair_write_job(STEPS, "%s", "");
    pair_submit(&events);
    pair_await(&events, "\"event\":\"job-done\"");
    command_finish(&events);
    ck_assert_int_eq(PAIR_GIMBAL("times", "j-1"), 0);
    ck_assert_msg(strstr(pair.command.out, "MEASURED/PREDICTED") != NULL, "%s", pair.command.out);
    ck_assert_int_eq(PAIR_GIMBAL("times", "j-1", "-o", "json"), 0);
    json_error_t why;
    json_t *root = json_loads(pair.command.out, 0, &why), *all = json_object_get(root, "times");
    ck_assert_msg(json_array_size(all) > 4, "%s", pair.command.out);
    json_array_foreach(all, index, item)
    {
        double own = json_number_value(json_object_get(item, "seconds"));
        ck_assert(index < 2 || own <= seconds); /* behind the sum of all */
        seconds = own;
        ck_assert_int_eq(json_integer_value(json_object_get(item, "steps")) % STEPS, 0);
        ratios += json_number_value(json_object_get(item, "median_ratio"));
    }
    ck_assert_double_gt(ratios, 0);
    json_decref(root);
}
END_TEST

START_TEST(what_has_no_trace_says_so)
{
    ck_assert_int_eq(PAIR_GIMBAL("times", "j-7"), 65);
    ck_assert_int_eq(PAIR_GIMBAL("times"), 64);

    ck_assert_int_eq(PAIR_GIMBAL("trace", "j-7"), 65);
    ck_assert_msg(strstr(pair.command.err, "there is no job 'j-7'"), "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "trace", "j-7"), 65);
    ck_assert_int_eq(PAIR_GIMBAL("trace"), 64);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "trace"), 64);
}
END_TEST

SUITE(traces)
{
    TCase *tcase = tcase_create("traces");
    tcase_add_checked_fixture(tcase, pair_start, pair_stop);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_trace_has_the_instructions_of_the_program_predicted_and_measured);
    tcase_add_test(tcase, times_are_those_of_all_steps_of_all_ranks);
    tcase_add_test(tcase, what_has_no_trace_says_so);
    return suite_run("traces", tcase, NULL);
}
