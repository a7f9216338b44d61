/* test_initialize.c - an element of a fresh parameter depends on its place only, however many
 * threads draw them. */
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#define SEED 7

static void check_parameter(const struct graph *graph, const struct parameter *parameter,
                            const float *drawn)
{
    const struct tensor *tensor = &graph->tensors[parameter->tensor];
    for (int64_t i = 0; i < box_count(&parameter->box); i++) {
        float right = tensor->initializer.mean;
        if (tensor->initializer.deviation > 0)
            right += tensor->initializer.deviation *
                     (float)random_normal(SEED, (uint64_t)parameter->tensor, (uint64_t)i);
        ck_assert_msg(drawn[i] == right, "%s: element %lld", tensor->name, (long long)i);
    }
}

/* The table of tokens has several times as many elements as are worth a thread. */
START_TEST(elements_are_drawn_by_their_place)
{
    const struct job_model model = {
        .family = "gpt", .layers = 1, .hidden = 96, .heads = 4, .seq = 12, .vocab = 4001};
    const struct feed feed = {0};
    const struct interpreter_config config = {.device = &device_plain, .feed = &feed};
    struct graph *graph;
    struct program *program;
    struct interpreter *in;
    struct error err = {""};
    ck_assert_int_eq(model_build(&model, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 1, 1);
    ck_assert_int_eq(lower(graph, plan, 0, &program, &err), 0);
    ck_assert_msg(interpreter_prepare(program, &config, &in, &err) == 0, "%s", err.text);
    interpreter_initialize(in, SEED);
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        check_parameter(graph, parameter, interpreter_buffer(in, parameter->master));
    }
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

SUITE(initialize)
{
    TCase *tcase = tcase_create("initialize");
    tcase_add_test(tcase, elements_are_drawn_by_their_place);
    return suite_run("initialize", tcase, NULL);
}
