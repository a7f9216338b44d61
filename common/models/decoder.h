/* decoder.h - the architecture shared by LLaMA and its descendants: RMSNorm, rotary positions,
 * grouped-query attention, a gated MLP, and an output head that is either separate or tied to the
 * embedding. Each family's own file adds only what differs. */
#ifndef COMMON_MODELS_DECODER_H
#define COMMON_MODELS_DECODER_H

#include "common/models/huggingface.h"

struct decoder {
    const struct operation *query, *keyvalue;      /* projections into heads */
    const struct operation *query_norm, *key_norm; /* per head, before rotation; NULL: none */
};

/* A family's `build` (see model.h), given the operations that vary between families. */
int decoder_build(const struct model_config *config, const struct decoder *decoder,
                  struct graph **out, struct error *err);

/* The weights as transformers stores them. Its projections are matrices of outputs by inputs, ours
 * of inputs by outputs; rotary pairs are element i of each half of a head, as ours. */
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

/* The keys of config.json that have to agree, see struct huggingface. */
#define DECODER_BINDING                                                                            \
    {"model_type"}, {"num_hidden_layers"}, {"num_attention_heads"}, {"num_key_value_heads"},       \
    {"hidden_act", "\"silu\""}, {"rms_norm_eps", "1e-6"},                                          \
    {"rope_theta", "10000", .unless = "rope_parameters"},                                          \
    {"rope_scaling", "null", .unless = "rope_parameters"}, {"rope_parameters"},                    \
    {"tie_word_embeddings", "false"}
/* clang-format on */

/* The part of config.json that all these families share; the family adds its own keys. Owned by the
 * caller. */
json_t *decoder_describe(const struct model_config *config, const struct graph *graph,
                         const char *model_type, const char *architecture);

#endif
