/* test_textbook.c - what the papers say a model takes, against what a program reserves.
 *
 * Their figures are for bf16; here everything is f32, so that an element is 4 bytes, and a weight
 * has no other master. Elements per token that a layer of GPT saves: the inputs and outputs of two
 * norms, q, k, v, attention's output, and both sides of the GELU, which is four times as wide: 16 h
 * (Korthikanti et al., without dropout and without the scores); with g of a heads' keys and values
 * a layer of LLaMA has 6 h + 2 h g/a + 3 f. States are 16 bytes a parameter (ZeRO: Rajbhandari et
 * al.). What comes on top of that has a name here. */
#include "common/models/model.h"
#include "common/program/lower.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#define LAYERS 12
#define HIDDEN 768
#define HEADS 12
#define SEQ 256
#define VOCAB 50304
#define SAMPLES 2 /* of each rank */
#define TOKENS (SEQ * SAMPLES)
#define WORD 4.0 /* bytes */
#define TOLERANCE 0.05

struct situation {
    const char *family, *role;
    int ranks, zero, kv_heads, ffn; /* kv_heads and ffn: 0 for the family's own */
    enum recompute recompute;
    int layers, samples;
};

static struct program *make(const struct situation *it, struct plan **out_plan,
                            struct graph **out_graph)
{
    const struct job_model config = {.family = it->family,
                                     .layers = it->layers,
                                     .hidden = HIDDEN,
                                     .heads = HEADS,
                                     .kv_heads = it->kv_heads,
                                     .ffn = it->ffn,
                                     .seq = SEQ,
                                     .vocab = VOCAB};
    struct program *program;
    struct error err = {""};
    ck_assert_msg(model_build(&config, ELEMENT_F32, out_graph, &err) == 0, "%s", err.text);
    *out_plan = engine_plan(*out_graph, 1, &it->ranks, 1, &it->role, 1, it->samples, "1f1b");
    for (int b = 0; b < (*out_plan)->block_count; b++) {
        (*out_plan)->blocks[b].zero = it->zero;
        (*out_plan)->blocks[b].recompute = it->recompute;
    }
    ck_assert_msg(lower(*out_graph, *out_plan, 0, &program, &err) == 0, "%s", err.text);
    return program;
}

static void near(double is, double expected, const char *what, const struct situation *it)
{
    ck_assert_msg(is >= (1 - TOLERANCE) * expected && is <= (1 + TOLERANCE) * expected,
                  "%s, %s, %d ranks, zero %d, recompute %d: %s is %.4g bytes, %.4g in the textbook",
                  it->family, it->role, it->ranks, it->zero, (int)it->recompute, what, is,
                  expected);
}

/* ---- the whole model ---- */

/* Elements per token that one layer saves: norms and GELU are made again by selective, all but a
 * layer's input by full recomputation. On top: a sum for each row of attention's softmax, and two
 * statistics for each norm, where they are not made again. */
static const struct {
    double elements, extra;
} layer[RECOMPUTES] = {
    [RECOMPUTE_NONE] = {16 * HIDDEN, HEADS + 4},
    [RECOMPUTE_SELECTIVE] = {10 * HIDDEN, HEADS},
    [RECOMPUTE_FULL] = {HIDDEN, 0},
};

/* And the head: the last norm's input and output, and the logits. */
static const double head[RECOMPUTES] = {
    [RECOMPUTE_NONE] = 2 * HIDDEN + VOCAB,
    [RECOMPUTE_SELECTIVE] = HIDDEN + VOCAB,
    [RECOMPUTE_FULL] = HIDDEN,
};

/* Bytes per parameter: whole, and over the ranks. On top: the shard of a weight that is gathered
 * for the step, and that of a gradient which is reduced once, are beside the whole. */
static const struct {
    double whole, sharded, extra;
} states[] = {{16, 0, 0}, {8, 8, 8}, {4, 12, 4}, {0, 16, 0}};

static const double layer_weights = 12 * HIDDEN * HIDDEN + 13 * HIDDEN;
static const double embedding_weights = (double)(VOCAB + SEQ) * HIDDEN;

static double state_of(const struct situation *it)
{
    double weights = LAYERS * layer_weights + embedding_weights + 2 * HIDDEN;
    if (it->ranks == 1)
        return 16 * weights;
    return (states[it->zero].whole +
            (states[it->zero].sharded + states[it->zero].extra) / it->ranks) *
           weights;
}

static double saved_of(const struct situation *it)
{
    enum recompute r = it->recompute;
    return (LAYERS * (layer[r].elements + layer[r].extra) + head[r]) * TOKENS * WORD;
}

/* Of the block that has most, twice, for the next one's move while it is computed: the gradient
 * that is on its way and its shard (zero 2); the weight, too (zero 3). */
static double beside_of(const struct situation *it)
{
    double wholes = it->zero == 3 ? 2 : it->zero == 2 ? 1 : 0;
    return wholes == 0 ? 0 : 2 * (wholes + 1.0 / it->ranks) * embedding_weights * WORD;
}

START_TEST(a_gpt_of_12_layers_of_768_takes_what_the_textbook_says)
{
    const int ranks = 4;
    struct plan *plan;
    struct graph *graph;
    const struct situation it = {.family = "gpt",
                                 .role = "batch",
                                 .ranks = ranks,
                                 .zero = _i / RECOMPUTES,
                                 .recompute = (enum recompute)(_i % RECOMPUTES),
                                 .layers = LAYERS,
                                 .samples = SAMPLES * ranks};
    struct program *program = make(&it, &plan, &graph);
    near((double)program->bytes[REGION_STATE], state_of(&it), "state", &it);
    near((double)program->bytes[REGION_SAVED], saved_of(&it), "saved", &it);
    near((double)program->bytes[REGION_COMMUNICATION], beside_of(&it), "communication", &it);
    /* The head's logits and their gradient, the largest room. */
    ck_assert_double_le((double)program->bytes[REGION_TRANSIENT],
                        (1 + TOLERANCE) * 2 * (VOCAB + 4 * HIDDEN) * TOKENS * WORD);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

START_TEST(one_rank_keeps_16_bytes_a_parameter)
{
    struct plan *plan;
    struct graph *graph;
    const struct situation it = {
        .family = "gpt", .role = "batch", .ranks = 1, .layers = LAYERS, .samples = SAMPLES};
    struct program *program = make(&it, &plan, &graph);
    near((double)program->bytes[REGION_STATE], state_of(&it), "state", &it);
    near((double)program->bytes[REGION_SAVED], saved_of(&it), "saved", &it);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

/* ---- a layer ---- */

static double slot_bytes(struct situation it, int layers)
{
    struct plan *plan;
    struct graph *graph;
    it.layers = layers;
    struct program *program = make(&it, &plan, &graph);
    double bytes = (double)program->slot_bytes;
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    return bytes;
}

#define FFN 2048
#define GPT(role, t) "gpt", role, t, 0, 0, 0, RECOMPUTE_NONE, 0, SAMPLES
#define SELECTIVE(role, t) "gpt", role, t, 0, 0, 0, RECOMPUTE_SELECTIVE, 0, SAMPLES
#define LLAMA(role, t, kv, recompute) "llama", role, t, 0, kv, FFN, recompute, 0, SAMPLES

/* Elements per token on a rank. Tensor parallelism divides what lies between its two all-reduces,
 * and leaves both norms' inputs and outputs whole (Shoeybi et al.); with sequence parallelism it
 * divides those, too. */
static const struct {
    struct situation it;
    double elements;
} layers[] = {
    {{GPT("tensor", 2)}, 4 * HIDDEN + 12 * HIDDEN / 2.0},
    {{GPT("tensor", 4)}, 4 * HIDDEN + 12 * HIDDEN / 4.0},
    {{GPT("tensor_seq", 2)}, 16 * HIDDEN / 2.0},
    {{GPT("tensor_seq", 4)}, 16 * HIDDEN / 4.0},
    {{GPT("context", 4)}, 16 * HIDDEN / 4.0},
    {{SELECTIVE("tensor_seq", 2)}, 10 * HIDDEN / 2.0},
    {{SELECTIVE("hidden", 2)}, 10 * HIDDEN / 2.0}, /* of a sum the share, not the summand */
    {{LLAMA("batch", 1, HEADS, RECOMPUTE_NONE)}, 8 * HIDDEN + 3 * FFN},
    {{LLAMA("batch", 1, 4, RECOMPUTE_NONE)}, 6 * HIDDEN + 2 * HIDDEN / 3.0 + 3 * FFN},
    {{LLAMA("batch", 1, HEADS, RECOMPUTE_SELECTIVE)}, 6 * HIDDEN + 2 * FFN},
    {{LLAMA("hidden", 2, HEADS, RECOMPUTE_SELECTIVE)}, (6 * HIDDEN + 2 * FFN) / 2.0},
    {{LLAMA("tensor_seq", 2, HEADS, RECOMPUTE_NONE)}, (8 * HIDDEN + 3 * FFN) / 2.0},
    {{LLAMA("batch", 1, HEADS, RECOMPUTE_FULL)}, HIDDEN},
};

START_TEST(a_layer_saves_what_the_textbook_says)
{
    const struct situation *it = &layers[_i].it;
    near(slot_bytes(*it, 3) - slot_bytes(*it, 2), layers[_i].elements * TOKENS * WORD, "a layer",
         it);
}
END_TEST

SUITE(textbook)
{
    TCase *tcase = tcase_create("textbook");
    tcase_add_loop_test(tcase, a_gpt_of_12_layers_of_768_takes_what_the_textbook_says, 0,
                        4 * RECOMPUTES);
    tcase_add_test(tcase, one_rank_keeps_16_bytes_a_parameter);
    tcase_add_loop_test(tcase, a_layer_saves_what_the_textbook_says, 0,
                        (int)(sizeof layers / sizeof *layers));
    return suite_run("textbook", tcase, NULL);
}
