/* test_clock.c - by which clock instructions are timed. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    (void)context;
    (void)kind;
    (void)first;
    (void)tensor;
    for (int64_t i = 0; i < box_count(box); i++)
        out[i] = (int32_t)(i % 36);
}

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    (void)context;
    (void)kind;
    (void)first;
    return (double)samples;
}

/* A second passes whenever somebody looks. */
static double looked;

static double look(void)
{
    return looked++;
}

START_TEST(instructions_take_what_the_given_clock_says)
{
    const struct job_model model = {
        .family = "gpt", .layers = 2, .hidden = 48, .heads = 4, .seq = 12, .vocab = 36};
    const struct feed feed = {NULL, fill, count_targets};
    const struct interpreter_config config = {
        .device = &device_plain,
        .feed = &feed,
        .optimizer = {.rate = 1e-3, .steps = 10, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8},
        .clock_cb = look};
    struct graph *graph;
    struct program *program;
    struct interpreter *in;
    struct step_result result;
    struct error err;
    ck_assert_int_eq(model_build(&model, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 2, 4);
    ck_assert_int_eq(lower(graph, plan, 0, &program, &err), 0);
    ck_assert_int_eq(interpreter_prepare(program, &config, &in, &err), 0);
    interpreter_initialize(in, 1);
    ck_assert_int_eq(interpreter_run(in, PROGRAM_TRAIN, 0, &result, &err), 0);
    for (size_t i = 0; i < program->instruction_count; i++)
        ck_assert_double_eq(interpreter_seconds(in)[i], (double)interpreter_runs(in)[i]);
    ck_assert_double_eq(looked, 1 + (double)program_step_count(program, PROGRAM_TRAIN));
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

SUITE(clock)
{
    TCase *tcase = tcase_create("clock");
    tcase_add_test(tcase, instructions_take_what_the_given_clock_says);
    return suite_run("clock", tcase, NULL);
}
