/* decoder.h - what LLaMA and the families after it have in common: root-mean-square norms, rotary
 * positions, queries in groups, a gated network, and a head of its own or the embedding's table.
 * What each does otherwise is in its own file. */
#ifndef COMMON_MODELS_DECODER_H
#define COMMON_MODELS_DECODER_H

#include "common/models/huggingface.h"

struct decoder {
    const struct operation *query, *keyvalue;      /* from the residual stream into heads */
    const struct operation *query_norm, *key_norm; /* of heads, before they turn; NULL: none */
};

/* As a family's build. */
int decoder_build(const struct model_config *config, const struct decoder *decoder,
                  struct graph **out, struct error *err);

/* As transformers has them: their projections are matrices of outputs by inputs; heads turn by
 * halves, as ours. */
/* clang-format off */
#define DECODER_ROWS                                                                               \
    {"model.embed_tokens.weight", "v h", {"embed.tokens.weight"}, .twin = "lm_head.weight"},       \
    {"model.layers.#.input_layernorm.weight", "h", {"layers.#.norm1.weight"}},                     \
    {"model.layers.#.self_attn.q_proj.weight", "kgd h", {"layers.#.q.weight"}},                    \
    {"model.layers.#.self_attn.k_proj.weight", "kd h", {"layers.#.k.weight"}},                     \
    {"model.layers.#.self_attn.v_proj.weight", "kd h", {"layers.#.v.weight"}},                     \
    {"model.layers.#.self_attn.o_proj.weight", "h kgd", {"layers.#.out.weight"}},                  \
    {"model.layers.#.post_attention_layernorm.weight", "h", {"layers.#.norm2.weight"}},            \
    {"model.layers.#.mlp.gate_proj.weight", "f h", {"layers.#.gate.weight"}},                      \
    {"model.layers.#.mlp.up_proj.weight", "f h", {"layers.#.up.weight"}},                          \
    {"model.layers.#.mlp.down_proj.weight", "h f", {"layers.#.down.weight"}},                      \
    {"model.norm.weight", "h", {"head.norm.weight"}},                                              \
    {"lm_head.weight", "v h", {"head.logits.weight"}, .untied = true}

#define DECODER_BINDING                                                                            \
    {"model_type"}, {"num_hidden_layers"}, {"num_attention_heads"}, {"num_key_value_heads"},       \
    {"hidden_act", "\"silu\""}, {"rms_norm_eps", "1e-6"},                                          \
    {"rope_theta", "10000", .unless = "rope_parameters"},                                          \
    {"rope_scaling", "null", .unless = "rope_parameters"}, {"rope_parameters"},                    \
    {"tie_word_embeddings", "false"}
/* clang-format on */

/* config.json, the caller's; the family adds what is its own. */
json_t *decoder_describe(const struct model_config *config, const struct graph *graph,
                         const char *model_type, const char *architecture);

#endif
