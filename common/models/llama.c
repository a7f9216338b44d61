/* llama.c - LLaMA (Touvron et al., arXiv 2302.13971 and 2307.09288): no biases; grouped-query
 * attention where model.kv_heads is less than model.heads. */
#include "common/models/decoder.h"

extern const struct operation operation_query, operation_keyvalue;

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    const struct decoder decoder = {&operation_query, &operation_keyvalue};
    return decoder_build(config, &decoder, out, err);
}

static const struct huggingface_row rows[] = {DECODER_ROWS, {NULL}};

static json_t *describe(const struct model_config *config, const struct graph *graph)
{
    json_t *root = decoder_describe(config, graph, "llama", "LlamaForCausalLM");
    json_object_set_new(root, "head_dim", json_integer(sizes_get(&graph->sizes, 'd')));
    json_object_set_new(root, "attention_bias", json_false());
    json_object_set_new(root, "mlp_bias", json_false());
    return root;
}

static const struct huggingface_key binding[] = {
    DECODER_BINDING, {"attention_bias", "false"}, {"mlp_bias", "false"}, {NULL}};
/* Mistral (Jiang et al., arXiv 2310.06825) from release 0.2 on, which has no sliding window. */
static const struct huggingface_alias aliases[] = {{"mistral", {"sliding_window", "4096"}, "null"},
                                                   {NULL}};
static const struct huggingface huggingface = {
    .rows = rows, .config = describe, .binding = binding, .aliases = aliases};

const struct model model_llama = {
    .family = "llama", .build = build, .ties = true, .huggingface = &huggingface};
