/* decoder.c - builds the graph of LLaMA-like decoders, and the part of config.json they share.
 *
 * The default MLP width is LLaMA's: 8/3 of hidden (two thirds of 4 hidden), rounded up to a
 * multiple of 256. */
#include "common/models/decoder.h"
#include "common/models/parts.h"

#include <errno.h>

extern const struct operation operation_embed, operation_rmsnorm, operation_rotary,
    operation_rotary_key, operation_grouped, operation_merge, operation_add, operation_widen,
    operation_swiglu, operation_narrow, operation_logits, operation_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int attention(struct graph *graph, const struct decoder *decoder, int input,
                     struct initializer residual)
{
    int q = parts_linear(graph, decoder->query, "q", input, parts_narrow);
    int k = parts_linear(graph, decoder->keyvalue, "k", input, parts_narrow);
    int v = parts_linear(graph, decoder->keyvalue, "v", input, parts_narrow);
    if (decoder->query_norm) {
        q = parts_rmsnorm(graph, decoder->query_norm, "q_norm", q);
        k = parts_rmsnorm(graph, decoder->key_norm, "k_norm", k);
    }
    q = graph_node(graph, &operation_rotary, "q.turned", (int[]){q});
    k = graph_node(graph, &operation_rotary_key, "k.turned", (int[]){k});
    int mixed = graph_node(graph, &operation_grouped, "core", (int[]){q, k, v});
    return parts_linear(graph, &operation_merge, "out", mixed, residual);
}

static int layer(struct graph *graph, const struct decoder *decoder, int64_t index, int input,
                 struct initializer residual)
{
    parts_layer(graph, index, TYPE_LAYER);
    int out = attention(graph, decoder, parts_rmsnorm(graph, &operation_rmsnorm, "norm1", input),
                        residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    int normed = parts_rmsnorm(graph, &operation_rmsnorm, "norm2", middle);
    int gate = parts_linear(graph, &operation_widen, "gate", normed, parts_narrow);
    int up = parts_linear(graph, &operation_widen, "up", normed, parts_narrow);
    int active = graph_node(graph, &operation_swiglu, "swiglu", (int[]){gate, up});
    int down = parts_linear(graph, &operation_narrow, "down", active, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, down});
}

static int check(const struct model_config *config, struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = config->head_dim ? 0 : parts_check_heads(config, err);
    if (rc < 0)
        return rc;
    if (config->heads % kv_heads != 0)
        return error_set(
            err, -EINVAL,
            "model.kv_heads %lld does not divide model.heads %lld; each needs the same "
            "whole number of them",
            (long long)kv_heads, (long long)config->heads);
    if (config->head_dim % 2 != 0)
        return error_set(err, -EINVAL,
                         "model.head_dim %lld is odd; rotary positions need an even width",
                         (long long)config->head_dim);
    if (!config->head_dim && config->hidden / config->heads % 2 != 0)
        return error_set(err, -EINVAL,
                         "model.heads %lld of model.hidden %lld are %lld wide; rotary positions "
                         "need an even width",
                         (long long)config->heads, (long long)config->hidden,
                         (long long)(config->hidden / config->heads));
    return 0;
}

int decoder_build(const struct model_config *config, const struct decoder *decoder,
                  struct graph **out, struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = check(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    parts_sizes(graph, config, (8 * config->hidden / 3 + 255) / 256 * 256);
    sizes_set(&graph->sizes, 'k', kv_heads);
    sizes_set(&graph->sizes, 'g', config->heads / kv_heads);
    sizes_set(&graph->sizes, 'd',
              config->head_dim ? config->head_dim : config->hidden / config->heads);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table = graph_weight(graph, "tokens.weight", "vh", parts_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, table});

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, decoder, i, x, parts_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    x = parts_rmsnorm(graph, &operation_rmsnorm, "norm", x);
    int head = config->tied == ANSWER_YES
                   ? table
                   : graph_weight(graph, "logits.weight", "vh", parts_narrow, true);
    x = graph_node(graph, &operation_logits, "logits", (int[]){x, head});
    graph_node(graph, &operation_loss, "loss", (int[]){x, targets});
    *out = graph;
    return 0;
}

static json_t *describe_rotation(const struct job_rope_scaling *scaling)
{
    json_t *root = json_pack("{s:s}", "rope_type", job_rope_types[scaling->rope_type]);
    if (scaling->rope_type != JOB_ROPE_DEFAULT)
        json_object_set_new(root, "factor", json_real(scaling->factor));
    if (scaling->rope_type == JOB_ROPE_LLAMA3) {
        json_object_set_new(root, "low_freq_factor", json_real(scaling->low_freq_factor));
        json_object_set_new(root, "high_freq_factor", json_real(scaling->high_freq_factor));
        json_object_set_new(root, "original_max_position_embeddings",
                            json_integer(scaling->original_max_position_embeddings));
    }
    return root;
}

/* We have no tokens that begin or end a text. RoPE settings are written twice because releases of
 * transformers before 5 read rope_theta and rope_scaling, release 5 reads rope_parameters. */
json_t *decoder_describe(const struct model_config *config, const struct graph *graph,
                         const char *model_type, const char *architecture)
{
    const struct sizes *sizes = &graph->sizes;
    double theta = (double)graph->rotation.base;
    bool scaled = config->rope_scaling.rope_type != JOB_ROPE_DEFAULT;
    json_t *parameters = describe_rotation(&config->rope_scaling);
    json_object_set_new(parameters, "rope_theta", json_real(theta));
    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:o, s:f, s:b, s:n, "
        "s:n, s:s}",
        "model_type", model_type, "architectures", architecture, "vocab_size",
        (json_int_t)config->vocab, "max_position_embeddings", (json_int_t)config->seq,
        "hidden_size", (json_int_t)config->hidden, "intermediate_size",
        (json_int_t)sizes_get(sizes, 'f'), "num_hidden_layers", (json_int_t)config->layers,
        "num_attention_heads", (json_int_t)config->heads, "num_key_value_heads",
        (json_int_t)sizes_get(sizes, 'k'), "hidden_act", "silu", "rms_norm_eps",
        (double)graph->epsilon, "rope_theta", theta, "rope_scaling",
        scaled ? describe_rotation(&config->rope_scaling) : json_null(), "rope_parameters",
        parameters, "initializer_range", 0.02, "tie_word_embeddings", config->tied == ANSWER_YES,
        "bos_token_id", "eos_token_id", "torch_dtype", "float32");
}
