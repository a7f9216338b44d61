/* qwen.c - Qwen2 (Yang et al., arXiv 2407.10671), and Qwen2.5 (arXiv 2412.15115): LLaMA with biases
 * on queries, keys and values. The published models use a norm epsilon of 1e-6 and a rotary base of
 * one million, to be set as model.norm_epsilon and model.rope_theta; in the small ones the head is
 * tied to the embedding (model.tied). */
#include "common/models/decoder.h"

extern const struct operation operation_query_and_bias, operation_keyvalue_and_bias;

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    const struct decoder decoder = {&operation_query_and_bias, &operation_keyvalue_and_bias};
    return decoder_build(config, &decoder, out, err);
}

static const struct huggingface_row rows[] = {
    DECODER_ROWS,
    {"model.layers.#.self_attn.q_proj.bias", "kgd", {"layers.#.q.bias"}},
    {"model.layers.#.self_attn.k_proj.bias", "kd", {"layers.#.k.bias"}},
    {"model.layers.#.self_attn.v_proj.bias", "kd", {"layers.#.v.bias"}},
    {NULL},
};

/* Attention is over all earlier positions; with use_sliding_window false the value of
 * sliding_window has no effect. */
static json_t *describe(const struct model_config *config, const struct graph *graph)
{
    json_t *root = decoder_describe(config, graph, "qwen2", "Qwen2ForCausalLM");
    json_object_set_new(root, "use_sliding_window", json_false());
    json_object_set_new(root, "sliding_window", json_null());
    return root;
}

static const struct huggingface_key binding[] = {
    DECODER_BINDING, {"use_sliding_window", "false"}, {NULL}};
static const struct huggingface huggingface = {
    .rows = rows, .config = describe, .binding = binding};

const struct model model_qwen = {
    .family = "qwen", .build = build, .ties = true, .huggingface = &huggingface};
