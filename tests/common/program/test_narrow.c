/* test_narrow.c - a graph in bf16: what is computed with takes two bytes, what is kept four. Its
 * programs are those of the same graph in f32, with a copy of every weight to compute with. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include "tests/support/counts.h"
#include <stdlib.h>

#define BATCH 8
#define HIDDEN 32
#define HEADS 4
#define SEQ 16
#define PLANS 60

static struct graph *make_graph(int element_bytes)
{
    struct job_model config = {
        .family = "gpt", .layers = 3, .hidden = HIDDEN, .heads = HEADS, .seq = SEQ, .vocab = 48};
    struct graph *graph;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    ck_assert_int_eq(graph->element_bytes, 4);
    graph->element_bytes = element_bytes;
    return graph;
}

static struct program *lower_rank(const struct graph *graph, const struct plan *plan, int rank)
{
    struct program *program;
    struct error err = {0};
    ck_assert_msg(lower(graph, plan, rank, &program, &err) == 0, "%s", err.text);
    return program;
}

static uint64_t sum_region(const struct program *program, enum region region)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < program->buffer_count; i++)
        bytes += program->buffers[i].region == region ? program->buffers[i].bytes : 0;
    return bytes;
}

/* Of a region what is no tensor: statistics, which stay f32; and numbers of tokens. */
static uint64_t sum_wide(const struct program *program, enum region region)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < program->buffer_count; i++) {
        const struct buffer *buffer = &program->buffers[i];
        bool wide = buffer->tensor < 0 ||
                    program->graph->tensors[buffer->tensor].kind == TENSOR_DATA ||
                    program->graph->tensors[buffer->tensor].kind == TENSOR_LOSS;
        bytes += buffer->region == region && wide ? buffer->bytes : 0;
    }
    return bytes;
}

/* Master, two moments and a gradient, 4 bytes each; and the copy, 2. */
START_TEST(a_parameter_takes_eighteen_bytes)
{
    struct graph *graph = make_graph(2);
    struct plan *plan = engine_plan_one(graph, 2, BATCH / 2);
    struct program *program = lower_rank(graph, plan, 0);
    uint64_t state = sum_region(program, REGION_STATE);
    uint64_t parameters = (uint64_t)count_parameters(graph);
    /* Besides the metrics; gradients begin on cache lines of their own. */
    ck_assert_uint_ge(state, 18 * parameters);
    ck_assert_uint_le(state, 18 * parameters + 64 * (program->parameter_count + 1));
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

START_TEST(what_forward_saves_is_half)
{
    struct graph *wide = make_graph(4), *narrow = make_graph(2);
    struct plan *plan = engine_plan_one(wide, 2, BATCH / 2);
    struct program *f32 = lower_rank(wide, plan, 0), *bf16 = lower_rank(narrow, plan, 0);
    uint64_t kept = sum_wide(f32, REGION_SAVED);
    ck_assert_uint_gt(sum_region(f32, REGION_SAVED), 4 * kept);
    ck_assert_uint_eq(2 * (sum_region(bf16, REGION_SAVED) - kept),
                      sum_region(f32, REGION_SAVED) - kept);
    program_destroy(f32);
    program_destroy(bf16);
    plan_destroy(plan);
    graph_destroy(wide);
    graph_destroy(narrow);
}
END_TEST

/* Of each token 32 bytes per hidden, which are norm-in 2, norm-out 2, qkv 6, attention 2, norm-in
 * 2, norm-out 2, and 8 before and behind the GELU; 4 per head for the softmax, and mean and width
 * of two norms. */
START_TEST(a_layer_saves_what_attention_and_the_wide_pair_need)
{
    struct graph *graph = make_graph(2);
    struct plan *plan = engine_plan_one(graph, 1, BATCH);
    struct program *program = lower_rank(graph, plan, 0);
    uint64_t tokens = (uint64_t)BATCH * SEQ, saved = 0;
    for (size_t i = 0; i < program->buffer_count; i++)
        if (program->buffers[i].region == REGION_SAVED && program->buffers[i].block == 2)
            saved += program->buffers[i].bytes;
    ck_assert_uint_eq(saved, tokens * (32 * HIDDEN + 4 * HEADS + 2 * 2 * 4));
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

static double sent_bytes(const struct program *program, enum section section)
{
    struct range range = program->sections[section];
    double bytes = 0;
    for (int i = range.first; i < range.first + range.count; i++)
        bytes += instruction_sent_bytes(program, &program->instructions[i]);
    return bytes;
}

static double sent_words(const struct program *program, enum section section)
{
    struct range range = program->sections[section];
    double words = 0;
    for (int i = range.first; i < range.first + range.count; i++)
        words += (double)instruction_words(program, &program->instructions[i]);
    return words;
}

/* Activations and weights travel in two bytes, gradients that are summed up in four. */
START_TEST(activations_travel_in_half_and_sums_of_gradients_do_not)
{
    const char *tensor = "tensor", *batch = "batch";
    struct graph *graph = make_graph(2);
    struct plan *plans[] = {engine_plan(graph, 1, (int[]){2}, 1, &tensor, 1, BATCH, "1f1b"),
                            engine_plan(graph, 1, (int[]){2}, 1, &batch, 2, BATCH / 2, "1f1b")};
    struct program *split = lower_rank(graph, plans[0], 0), *data = lower_rank(graph, plans[1], 0);
    ck_assert_double_gt(sent_words(split, SECTION_BACKWARD), 0);
    ck_assert_double_eq(sent_bytes(split, SECTION_BACKWARD),
                        2 * sent_words(split, SECTION_BACKWARD));
    ck_assert_double_gt(sent_words(data, SECTION_REDUCE), 0);
    ck_assert_double_eq(sent_bytes(data, SECTION_REDUCE), 4 * sent_words(data, SECTION_REDUCE));
    for (int i = 0; i < 2; i++)
        plan_destroy(plans[i]);
    program_destroy(split);
    program_destroy(data);
    graph_destroy(graph);
}
END_TEST

/* Whatever the plan: as many words, and one instruction more for every weight that is kept. */
START_TEST(a_narrow_program_is_the_wide_one_with_copies)
{
    struct graph *wide = make_graph(4), *narrow = make_graph(2);
    struct plan *plan = engine_plan_random(wide, test_seed() + (uint64_t)_i, 8, BATCH);
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct program *f32 = lower_rank(wide, plan, rank), *bf16 = lower_rank(narrow, plan, rank);
        size_t copies = 0;
        ck_assert_int_eq(count_words(bf16), count_words(f32));
        ck_assert_uint_eq(bf16->parameter_count, f32->parameter_count);
        for (size_t i = 0; i < bf16->parameter_count; i++)
            copies += box_count(&bf16->parameters[i].box) > 0;
        ck_assert_uint_eq(bf16->instruction_count, f32->instruction_count + copies);
        program_destroy(f32);
        program_destroy(bf16);
    }
    plan_destroy(plan);
    graph_destroy(wide);
    graph_destroy(narrow);
}
END_TEST

SUITE(narrow)
{
    TCase *sizes = tcase_create("sizes");
    tcase_add_test(sizes, a_parameter_takes_eighteen_bytes);
    tcase_add_test(sizes, what_forward_saves_is_half);
    tcase_add_test(sizes, a_layer_saves_what_attention_and_the_wide_pair_need);
    tcase_add_test(sizes, activations_travel_in_half_and_sums_of_gradients_do_not);
    tcase_add_loop_test(sizes, a_narrow_program_is_the_wide_one_with_copies, 0, test_share(PLANS));
    return suite_run("narrow", sizes, NULL);
}
