/* llama.c - LLaMA (Touvron et al., arXiv 2302.13971 and 2307.09288): root-mean-square norms, rotary
 * positions, a gated network, no biases; queries in groups where model.kv_heads is less than
 * model.heads; a head of its own, or the embedding's table where model.tied says so.
 *
 * The usual width of the network is two thirds of 4 hidden, up to a multiple of 256. */
#include "common/models/huggingface.h"
#include "common/models/parts.h"

#include <errno.h>

extern const struct operation operation_embed, operation_query, operation_keyvalue,
    operation_rotary, operation_rotary_key, operation_grouped, operation_merge, operation_add,
    operation_widen, operation_swiglu, operation_narrow, operation_logits, operation_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int attention(struct graph *graph, int input, struct initializer residual)
{
    int q = parts_linear(graph, &operation_query, "q", input, parts_narrow);
    int k = parts_linear(graph, &operation_keyvalue, "k", input, parts_narrow);
    int v = parts_linear(graph, &operation_keyvalue, "v", input, parts_narrow);
    q = graph_node(graph, &operation_rotary, "q.turned", (int[]){q});
    k = graph_node(graph, &operation_rotary_key, "k.turned", (int[]){k});
    int mixed = graph_node(graph, &operation_grouped, "core", (int[]){q, k, v});
    return parts_linear(graph, &operation_merge, "out", mixed, residual);
}

static int layer(struct graph *graph, int64_t index, int input, struct initializer residual)
{
    parts_layer(graph, index, TYPE_LAYER);
    int out = attention(graph, parts_rmsnorm(graph, "norm1", input), residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    int normed = parts_rmsnorm(graph, "norm2", middle);
    int gate = parts_linear(graph, &operation_widen, "gate", normed, parts_narrow);
    int up = parts_linear(graph, &operation_widen, "up", normed, parts_narrow);
    int active = graph_node(graph, &operation_swiglu, "swiglu", (int[]){gate, up});
    int down = parts_linear(graph, &operation_narrow, "down", active, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, down});
}

static int check(const struct model_config *config, struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = parts_check_heads(config, err);
    if (rc < 0)
        return rc;
    if (config->heads % kv_heads != 0)
        return error_set(
            err, -EINVAL,
            "model.kv_heads %lld does not divide model.heads %lld; each needs the same "
            "whole number of them",
            (long long)kv_heads, (long long)config->heads);
    if (config->hidden / config->heads % 2 != 0)
        return error_set(err, -EINVAL,
                         "model.heads %lld of model.hidden %lld are %lld wide; rotary positions "
                         "need an even width",
                         (long long)config->heads, (long long)config->hidden,
                         (long long)(config->hidden / config->heads));
    return 0;
}

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = check(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    parts_sizes(graph, config, (8 * config->hidden / 3 + 255) / 256 * 256);
    sizes_set(&graph->sizes, 'k', kv_heads);
    sizes_set(&graph->sizes, 'g', config->heads / kv_heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table = graph_weight(graph, "tokens.weight", "vh", parts_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, table});

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, i, x, parts_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    x = parts_rmsnorm(graph, "norm", x);
    int head = config->tied == ANSWER_YES
                   ? table
                   : graph_weight(graph, "logits.weight", "vh", parts_narrow, true);
    x = graph_node(graph, &operation_logits, "logits", (int[]){x, head});
    graph_node(graph, &operation_loss, "loss", (int[]){x, targets});
    *out = graph;
    return 0;
}

/* Their projections are matrices of outputs by inputs; heads turn by halves, as ours. */
static const struct huggingface_row rows[] = {
    {"model.embed_tokens.weight", "v h", {"embed.tokens.weight"}, .twin = "lm_head.weight"},
    {"model.layers.#.input_layernorm.weight", "h", {"layers.#.norm1.weight"}},
    {"model.layers.#.self_attn.q_proj.weight", "kgd h", {"layers.#.q.weight"}},
    {"model.layers.#.self_attn.k_proj.weight", "kd h", {"layers.#.k.weight"}},
    {"model.layers.#.self_attn.v_proj.weight", "kd h", {"layers.#.v.weight"}},
    {"model.layers.#.self_attn.o_proj.weight", "h kgd", {"layers.#.out.weight"}},
    {"model.layers.#.post_attention_layernorm.weight", "h", {"layers.#.norm2.weight"}},
    {"model.layers.#.mlp.gate_proj.weight", "f h", {"layers.#.gate.weight"}},
    {"model.layers.#.mlp.up_proj.weight", "f h", {"layers.#.up.weight"}},
    {"model.layers.#.mlp.down_proj.weight", "h f", {"layers.#.down.weight"}},
    {"model.norm.weight", "h", {"head.norm.weight"}},
    {"lm_head.weight", "v h", {"head.logits.weight"}, .untied = true},
    {NULL},
};

/* Ours knows no token that begins or ends a text. How heads turn, release 5 and earlier ones of
 * transformers look for in different places. */
static json_t *describe(const struct model_config *config, const struct graph *graph)
{
    const struct sizes *sizes = &graph->sizes;
    return json_pack("{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:n, "
                     "s:{s:s, s:f}, s:f, s:b, s:b, s:b, "
                     "s:n, s:n, s:s}",
                     "model_type", "llama", "architectures", "LlamaForCausalLM", "vocab_size",
                     (json_int_t)config->vocab, "max_position_embeddings", (json_int_t)config->seq,
                     "hidden_size", (json_int_t)config->hidden, "intermediate_size",
                     (json_int_t)sizes_get(sizes, 'f'), "num_hidden_layers",
                     (json_int_t)config->layers, "num_attention_heads", (json_int_t)config->heads,
                     "num_key_value_heads", (json_int_t)sizes_get(sizes, 'k'), "head_dim",
                     (json_int_t)sizes_get(sizes, 'd'), "hidden_act", "silu", "rms_norm_eps",
                     (double)graph->epsilon, "rope_theta", (double)graph->base, "rope_scaling",
                     "rope_parameters", "rope_type", "default", "rope_theta", (double)graph->base,
                     "initializer_range", 0.02, "attention_bias", false, "mlp_bias", false,
                     "tie_word_embeddings", config->tied == ANSWER_YES, "bos_token_id",
                     "eos_token_id", "torch_dtype", "float32");
}

static const struct huggingface_key binding[] = {{"model_type"},
                                                 {"num_attention_heads"},
                                                 {"num_key_value_heads"},
                                                 {"hidden_act", "\"silu\""},
                                                 {"rms_norm_eps", "1e-6"},
                                                 {"rope_theta"},
                                                 {"rope_parameters"},
                                                 {"rope_scaling"},
                                                 {"attention_bias", "false"},
                                                 {"mlp_bias", "false"},
                                                 {"tie_word_embeddings", "false"},
                                                 {NULL}};
static const struct huggingface huggingface = {rows, describe, binding};

const struct model model_llama = {
    .family = "llama", .build = build, .ties = true, .huggingface = &huggingface};
