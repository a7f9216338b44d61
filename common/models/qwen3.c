/* qwen3.c - Qwen3 (Yang et al., arXiv 2505.09388), its dense models: LLaMA with a norm of every
 * head of queries and keys, whose width is given by itself: model.head_dim. Norms add 1e-6,
 * positions turn by a base of a million: model.norm_epsilon and model.rope_theta; the small ones
 * are tied. */
#include "common/models/decoder.h"

extern const struct operation operation_query, operation_keyvalue, operation_query_norm,
    operation_key_norm;

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    const struct decoder decoder = {&operation_query, &operation_keyvalue, &operation_query_norm,
                                    &operation_key_norm};
    return decoder_build(config, &decoder, out, err);
}

static const struct huggingface_row rows[] = {
    DECODER_ROWS,
    {"model.layers.#.self_attn.q_norm.weight", "d", {"layers.#.q_norm.weight"}},
    {"model.layers.#.self_attn.k_norm.weight", "d", {"layers.#.k_norm.weight"}},
    {NULL},
};

/* Every place sees all before it: what sliding_window is plays no part then. */
static json_t *describe(const struct model_config *config, const struct graph *graph)
{
    json_t *root = decoder_describe(config, graph, "qwen3", "Qwen3ForCausalLM");
    json_object_set_new(root, "head_dim", json_integer(sizes_get(&graph->sizes, 'd')));
    json_object_set_new(root, "attention_bias", json_false());
    json_object_set_new(root, "use_sliding_window", json_false());
    json_object_set_new(root, "sliding_window", json_null());
    return root;
}

static const struct huggingface_key binding[] = {DECODER_BINDING,
                                                 {"head_dim", "128"},
                                                 {"attention_bias", "false"},
                                                 {"use_sliding_window", "false"},
                                                 {NULL}};
static const struct huggingface huggingface = {
    .rows = rows, .config = describe, .binding = binding};

const struct model model_qwen3 = {
    .family = "qwen3", .build = build, .ties = true, .huggingface = &huggingface};
