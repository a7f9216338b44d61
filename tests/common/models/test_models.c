/* test_models.c - the families' graphs: their parameters by the formulas of the papers, what they
 * refuse, and that every vector of roles on an axis lowers and is simulated. */
#include "common/models/model.h"
#include "common/program/lower.h"
#include "coordinator/simulation/simulate.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include "tests/support/counts.h"
#include <errno.h>
#include <string.h>

static struct error err;

static struct graph *build(const struct job_model *config)
{
    struct graph *graph;
    ck_assert_msg(model_build(config, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    return graph;
}

static int64_t parameters(const struct job_model *config)
{
    struct graph *graph = build(config);
    int64_t count = count_parameters(graph);
    graph_destroy(graph);
    return count;
}

/* Layers of four h x h matrices and two of h x 4h, with biases, and two norms. */
static int64_t encoder_layers(const struct job_model *config)
{
    int64_t h = config->hidden;
    return config->layers * (12 * h * h + 13 * h);
}

START_TEST(gpt_has_the_parameters_of_its_papers)
{
    struct job_model small = {"gpt",       .layers = 12, .hidden = 768,
                              .heads = 12, .seq = 1024,  .vocab = 50257};
    ck_assert_int_eq(parameters(&small), 124439808); /* GPT-2's checkpoint */
    struct job_model large = {"gpt",       .layers = 96, .hidden = 12288,
                              .heads = 96, .seq = 2048,  .vocab = 50257};
    int64_t h = large.hidden;
    ck_assert_int_eq(parameters(&large),
                     encoder_layers(&large) + (large.vocab + large.seq) * h + 2 * h);
    ck_assert_int_eq(parameters(&large), 174604259328);
}
END_TEST

START_TEST(llama_has_the_parameters_of_its_checkpoints)
{
    struct job_model small = {"llama",     .layers = 32, .hidden = 4096,
                              .heads = 32, .seq = 2048,  .vocab = 32000};
    ck_assert_int_eq(parameters(&small), 6738415616);
    struct job_model large = {"llama",     .layers = 80,   .hidden = 8192, .heads = 64,
                              .seq = 4096, .vocab = 32000, .ffn = 28672,   .kv_heads = 8};
    ck_assert_int_eq(parameters(&large), 68976648192);
    struct job_model tied = {"llama",           .layers = 16,      .hidden = 2048,
                             .heads = 32,       .seq = 8192,       .vocab = 128256,
                             .ffn = 8192,       .kv_heads = 8,     .norm_epsilon = 1e-5,
                             .rope_theta = 5e5, .tied = ANSWER_YES};
    ck_assert_int_eq(parameters(&tied), 1235814400); /* LLaMA 3.2 1B */
    tied.tied = ANSWER_NO;
    ck_assert_int_eq(parameters(&tied), 1235814400 + 128256 * 2048);
}
END_TEST

START_TEST(qwen_has_the_parameters_of_its_checkpoints)
{
    struct job_model small = {"qwen",      .layers = 24,  .hidden = 896,
                              .heads = 14, .seq = 32768,  .vocab = 151936,
                              .ffn = 4864, .kv_heads = 2, .tied = ANSWER_YES};
    ck_assert_int_eq(parameters(&small), 494032768); /* Qwen2.5 0.5B */
    struct job_model large = {"qwen",       .layers = 28,    .hidden = 3584, .heads = 28,
                              .seq = 32768, .vocab = 152064, .ffn = 18944,   .kv_heads = 4};
    ck_assert_int_eq(parameters(&large), 7615616512); /* 7B */
}
END_TEST

START_TEST(qwen3_has_the_parameters_of_its_checkpoints)
{
    struct job_model small = {"qwen3",       .layers = 28,      .hidden = 1024, .heads = 16,
                              .seq = 32768,  .vocab = 151936,   .ffn = 3072,    .head_dim = 128,
                              .kv_heads = 8, .tied = ANSWER_YES};
    ck_assert_int_eq(parameters(&small), 596049920); /* Qwen3 0.6B */
    struct job_model large = {"qwen3",      .layers = 36,    .hidden = 4096,
                              .heads = 32,  .seq = 32768,    .vocab = 151936,
                              .ffn = 12288, .head_dim = 128, .kv_heads = 8};
    ck_assert_int_eq(parameters(&large), 8190735360); /* 8B */
}
END_TEST

START_TEST(bert_and_vit_have_the_parameters_of_their_formulas)
{
    for (int64_t layers = 32; layers <= 48; layers += 16) {
        struct job_model bert = {"bert",      .layers = layers, .hidden = 1280,
                                 .heads = 16, .seq = 512,       .vocab = 30522};
        ck_assert_int_eq(parameters(&bert), encoder_layers(&bert) + (30522 + 512 + 2) * 1280);
        struct job_model vit = {"vit",      .layers = layers, .hidden = 1280, .heads = 16,
                                .seq = 256, .vocab = 1000,    .patch = 14};
        ck_assert_int_eq(parameters(&vit), encoder_layers(&vit) +
                                               (3 * 14 * 14 + 1 + 256 + 2) * 1280 + 1280 * 1000 +
                                               1000);
    }
}
END_TEST

static void find_boxes(const struct graph *graph, const struct node *node, int64_t samples,
                       struct box *boxes)
{
    for (int i = 0; i < operation_operands(node->operation); i++)
        boxes[i] = tensor_box(&graph->tensors[node->operands[i]], samples);
}

/* Forward of one sample, in multiples of two operations per weight and token. */
START_TEST(most_arithmetic_is_two_operations_for_each_weight_and_token)
{
    struct job_model config = {"llama",   .layers = 2,    .hidden = 512, .heads = 8,
                               .seq = 16, .vocab = 32000, .kv_heads = 2};
    struct graph *graph = build(&config);
    double flops = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        struct box boxes[OPERANDS_MAX];
        find_boxes(graph, &graph->nodes[n], 1, boxes);
        flops += node_flops(&graph->nodes[n], boxes, FORWARD);
    }
    /* The embedding is looked up, not multiplied. */
    double weights = (double)(count_parameters(graph) - 32000 * 512);
    ck_assert_double_gt(flops, 2 * weights * 16);
    ck_assert_double_lt(flops, 2.1 * weights * 16);
    graph_destroy(graph);
}
END_TEST

/* The scores of a causal sequence are a triangle; of two pieces of its queries the later one has
 * three quarters of it, and the step takes as long as that one. */
START_TEST(the_last_piece_of_a_causal_sequence_counts_for_all_pieces)
{
    static const char *const families[] = {"gpt", "llama"};
    struct job_model config = {families[_i], .layers = 1,  .hidden = 64,          .heads = 4,
                               .seq = 32,    .vocab = 256, .kv_heads = _i ? 2 : 0};
    struct graph *graph = build(&config);
    const struct node *node = graph->nodes;
    while (node->operation != &operation_causal_attention)
        node++;
    struct box boxes[OPERANDS_MAX];
    find_boxes(graph, node, 2, boxes);
    double whole = node_flops(node, boxes, FORWARD);
    ck_assert_double_eq(whole, 4.0 * (double)box_count(&boxes[0]) * 32 / 2);
    boxes[0].high[1] = 16;
    ck_assert_double_eq(node_flops(node, boxes, FORWARD), whole * 3 / 4);
    graph_destroy(graph);
}
END_TEST

static const struct {
    struct job_model config;
    const char *words;
} wrong[] = {
    {{"llama", 2, 64, 6, 16, 256}, "model.heads 6 does not divide model.hidden 64"},
    {{"llama", 2, 64, 8, 16, 256, .kv_heads = 3}, "model.kv_heads 3 does not divide model.heads 8"},
    {{"llama", 2, 24, 8, 16, 256}, "rotary positions need an even width"},
    {{"qwen3", 2, 24, 8, 16, 256, .head_dim = 5}, "model.head_dim 5 is odd"},
    {{"gpt", 2, 64, 8, 16, 256, .head_dim = 8}, "model.head_dim is of models with queries in"},
    {{"vit", 2, 64, 8, 16, 10}, "model.patch is missing"},
    {{"bert", 2, 64, 5, 16, 256}, "model.heads 5 does not divide"},
    {{"gpt", 2, 64, 8, 16, 256, .rope_theta = 500}, "model.rope_theta is of models with rotary"},
    {{"gpt", 2, 64, 8, 16, 256, .rope_scaling = {JOB_ROPE_LINEAR, 2}},
     "model.rope_scaling is of models with rotary"},
    {{"bert", 2, 64, 8, 16, 256, .kv_heads = 8}, "model.kv_heads is of models with queries in"},
    {{"gpt", 2, 64, 8, 16, 256, .patch = 16}, "model.patch is of models with images"},
    {{"gpt", 2, 64, 8, 16, 256, .tied = ANSWER_NO}, "model.tied is of models with a choice of it"},
    {{"gpt", 2, 64, 8, 16, 256, .tied = ANSWER_YES}, "and those of family gpt have none"},
    {{"elmo", 2, 64, 8, 16, 256},
     "model.family 'elmo' is unknown; known: gpt, llama, qwen, qwen3, bert, vit"},
};

START_TEST(sizes_that_do_not_go_together_are_refused)
{
    struct graph *graph;
    ck_assert_int_eq(model_build(&wrong[_i].config, ELEMENT_F32, &graph, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, wrong[_i].words), "%s", err.text);
}
END_TEST

static const struct job_model little[] = {
    {"gpt", 2, 32, 4, 8, 32},
    {"llama", 2, 32, 8, 8, 32, .ffn = 64, .kv_heads = 4},
    {"llama", 2, 32, 4, 8, 32, .ffn = 64, .tied = ANSWER_YES},
    {"qwen", 2, 32, 8, 8, 32, .ffn = 64, .kv_heads = 4},
    {"bert", 2, 32, 4, 8, 32},
    {"vit", 2, 32, 4, 8, 32, .patch = 2},
};
#define LITTLE (int)(sizeof little / sizeof *little)

START_TEST(what_cannot_be_trained_says_why)
{
    static const char *const words[] = {
        NULL, NULL, NULL, NULL, "no data is masked for it yet", "no data format has images yet"};
    struct graph *graph = build(&little[_i]);
    int rc = model_runs(&little[_i], graph, &err);
    ck_assert_int_eq(rc, words[_i] ? -ENOSYS : 0);
    if (words[_i])
        ck_assert_ptr_nonnull(strstr(err.text, words[_i]));
    struct job_model other = {"gpt"};
    bool planned = strcmp(little[_i].family, "vit") == 0;
    ck_assert_int_eq(model_runs(&other, graph, &err), planned ? -ENOSYS : 0);
    if (planned)
        ck_assert_ptr_nonnull(strstr(err.text, "no device has a kernel for operation pool yet"));
    graph_destroy(graph);
}
END_TEST

static double one_second(const void *context, const struct program *program,
                         const struct instruction *instruction)
{
    (void)context;
    (void)program;
    (void)instruction;
    return 1;
}

/* Lowering accepts the plan, and its programs end. */
static void check_plan(const struct graph *graph, const struct plan *plan, const char *what)
{
    struct program *programs[8] = {NULL};
    const struct timing timing = {NULL, one_second};
    struct simulation simulation;
    int ranks = plan_ranks(plan);
    ck_assert_int_le(ranks, 8);
    ck_assert_msg(plan_check(plan, graph, &err) == 0, "%s: %s", what, err.text);
    for (int rank = 0; rank < ranks; rank++)
        ck_assert_msg(lower(graph, plan, rank, &programs[rank], &err) == 0, "%s: %s", what,
                      err.text);
    int rc = simulate((const struct program *const *)programs, ranks, PROGRAM_TRAIN, &timing, NULL,
                      &simulation, &err);
    ck_assert_msg(rc == 0, "%s: %s", what, err.text);
    for (int rank = 0; rank < ranks; rank++)
        program_destroy(programs[rank]);
}

START_TEST(every_family_lowers_under_every_pair_of_roles)
{
    const struct job_model *config = &little[_i / 36];
    const char *names[] = {roles[_i % 6]->name, roles[_i % 36 / 6]->name};
    struct graph *graph = build(config);
    for (int stages = 1; stages <= 2; stages++) {
        char what[96];
        snprintf(what, sizeof what, "%s under %s, %s, %d stages", config->family, names[0],
                 names[1], stages);
        struct plan *plan = engine_plan(graph, stages, (int[]){2, 2}, 2, names, 2, 4, "1f1b");
        check_plan(graph, plan, what);
        plan_destroy(plan);
    }
    graph_destroy(graph);
}
END_TEST

START_TEST(every_family_lowers_under_random_plans)
{
    struct graph *graph = build(&little[_i % LITTLE]);
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, 8, 8);
    check_plan(graph, plan, little[_i % LITTLE].family);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

SUITE(models)
{
    TCase *sizes = tcase_create("sizes"), *plans = tcase_create("plans");
    tcase_add_test(sizes, gpt_has_the_parameters_of_its_papers);
    tcase_add_test(sizes, llama_has_the_parameters_of_its_checkpoints);
    tcase_add_test(sizes, qwen_has_the_parameters_of_its_checkpoints);
    tcase_add_loop_test(sizes, the_last_piece_of_a_causal_sequence_counts_for_all_pieces, 0, 2);
    tcase_add_test(sizes, qwen3_has_the_parameters_of_its_checkpoints);
    tcase_add_test(sizes, bert_and_vit_have_the_parameters_of_their_formulas);
    tcase_add_test(sizes, most_arithmetic_is_two_operations_for_each_weight_and_token);
    tcase_add_loop_test(sizes, sizes_that_do_not_go_together_are_refused, 0,
                        sizeof wrong / sizeof *wrong);
    tcase_add_loop_test(sizes, what_cannot_be_trained_says_why, 0, LITTLE);
    tcase_set_timeout(plans, 60);
    tcase_add_loop_test(plans, every_family_lowers_under_every_pair_of_roles, 0, LITTLE * 36);
    tcase_add_loop_test(plans, every_family_lowers_under_random_plans, 0, test_share(60));
    return suite_run("models", sizes, plans, NULL);
}
