/* qwen3.c - the dense models of Qwen3 (Yang et al., arXiv 2505.09388): LLaMA with a norm on every
 * query and key head, and a head width of its own, model.head_dim. The published models use a norm
 * epsilon of 1e-6 and a rotary base of one million, to be set as model.norm_epsilon and
 * model.rope_theta; in the small ones the head is tied to the embedding (model.tied). */
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

/* Attention is over all earlier positions; with use_sliding_window false the value of
 * sliding_window has no effect. */
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
