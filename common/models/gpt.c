/* gpt.c - GPT-2 (Radford et al. 2019): learned positions, norms before attention and before the
 * MLP (pre-norm), tanh GELU, the head tied to the embedding. */
#include "common/models/huggingface.h"
#include "common/models/layers.h"

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int build(const struct job_model *config, struct graph **out, struct error *err)
{
    int rc = layer_check_heads(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    layer_sizes(graph, config, 4 * config->hidden);
    layer_heads(graph, config);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table, x = layer_embed(graph, tokens, &table);

    for (int64_t i = 0; i < config->layers; i++) {
        layer_begin(graph, i, TYPE_LAYER);
        x = layer_prenorm(graph, &operation_causal_attention, x, layer_residual(config->layers));
    }

    graph_block(graph, "head", TYPE_HEAD);
    x = layer_norm(graph, "norm", x);
    layer_head(graph, x, table, targets);
    *out = graph;
    return 0;
}

/* Its projections are matrices of inputs by outputs, as ours; queries, keys and values are one
 * tensor. */
static const struct huggingface_row rows[] = {
    {"transformer.wte.weight", "v h", {"embed.tokens.weight"}, .twin = "lm_head.weight"},
    {"transformer.wpe.weight", "s h", {"embed.positions.weight"}},
    {"transformer.h.#.ln_1.weight", "h", {"layers.#.norm1.weight"}},
    {"transformer.h.#.ln_1.bias", "h", {"layers.#.norm1.bias"}},
    {"transformer.h.#.attn.c_attn.weight",
     "h nd",
     {"layers.#.q.weight", "layers.#.k.weight", "layers.#.v.weight"}},
    {"transformer.h.#.attn.c_attn.bias",
     "nd",
     {"layers.#.q.bias", "layers.#.k.bias", "layers.#.v.bias"}},
    {"transformer.h.#.attn.c_proj.weight", "nd h", {"layers.#.out.weight"}},
    {"transformer.h.#.attn.c_proj.bias", "h", {"layers.#.out.bias"}},
    {"transformer.h.#.ln_2.weight", "h", {"layers.#.norm2.weight"}},
    {"transformer.h.#.ln_2.bias", "h", {"layers.#.norm2.bias"}},
    {"transformer.h.#.mlp.c_fc.weight", "h f", {"layers.#.fc1.weight"}},
    {"transformer.h.#.mlp.c_fc.bias", "f", {"layers.#.fc1.bias"}},
    {"transformer.h.#.mlp.c_proj.weight", "f h", {"layers.#.fc2.weight"}},
    {"transformer.h.#.mlp.c_proj.bias", "h", {"layers.#.fc2.bias"}},
    {"transformer.ln_f.weight", "h", {"head.norm.weight"}},
    {"transformer.ln_f.bias", "h", {"head.norm.bias"}},
    {NULL},
};

/* We have no dropout, and no tokens that begin or end a text. */
static json_t *describe(const struct job_model *config, const struct graph *graph)
{
    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:n, s:n, "
        "s:s}",
        "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "vocab_size",
        (json_int_t)config->vocab, "n_positions", (json_int_t)config->seq, "n_embd",
        (json_int_t)config->hidden, "n_layer", (json_int_t)config->layers, "n_head",
        (json_int_t)config->heads, "n_inner",
        (json_int_t)huggingface_size(graph, "layers.0.fc1.weight", 'f'), "activation_function",
        "gelu_new", "layer_norm_epsilon", (double)graph->epsilon, "initializer_range", 0.02,
        "attn_pdrop", 0.0, "embd_pdrop", 0.0, "resid_pdrop", 0.0, "tie_word_embeddings", true,
        "bos_token_id", "eos_token_id", "torch_dtype", "float32");
}

static const struct huggingface_key compared[] = {
    {"vocab_size", "50257", .dim = 'v', .more = HUGGINGFACE_PADDING_MAX},
    {"n_positions", "1024", .dim = 's'},
    {"max_position_embeddings", .as = "n_positions"},
    {"n_embd", "768"},
    {"hidden_size", .as = "n_embd"},
    {"n_layer", "12"},
    {"num_hidden_layers", .as = "n_layer"},
    {"n_head", "12"},
    {"num_attention_heads", .as = "n_head"},
    {"n_inner", "null", .nullable = true},
    {"activation_function", "\"gelu_new\""},
    {"layer_norm_epsilon", "1e-5"},
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"add_cross_attention", "false"},
    {"tie_word_embeddings", "true"},
    {NULL},
};
/* The order in which a product is scaled is one of rounding. */
static const char *const nothing[] = {
    "attn_pdrop",
    "embd_pdrop",
    "n_ctx",
    "n_special",
    "predict_special_tokens",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    NULL,
};
/* No release of transformers computes anything by these in a GPT-2. */
static const char *const refused[] = {"head_dim", "rope_parameters", "sliding_window", NULL};
static const struct huggingface_type types[] = {{"gpt2", {0}}, {NULL, {0}}};

/* All of these are GELU by tanh, in other words. */
static const char *const tanh_gelus[] = {"gelu_accurate", "gelu_fast", "gelu_python_tanh",
                                         "gelu_pytorch_tanh", NULL};

static void settle(json_t *theirs, const struct job_model *config)
{
    (void)config;
    uint64_t width = (uint64_t)json_integer_value(json_object_get(theirs, "n_embd"));
    if (json_is_null(json_object_get(theirs, "n_inner")))
        json_object_set_new(theirs, "n_inner", json_integer((json_int_t)(4 * width)));
    huggingface_settle_word(theirs, "activation_function", tanh_gelus, "gelu_new");
}

static const struct huggingface huggingface = {.rows = rows,
                                               .prefix = "transformer.",
                                               .config = describe,
                                               .types = types,
                                               .keys = {compared, nothing, refused},
                                               .settle = settle};

const struct model model_gpt = {.family = "gpt", .build = build, .huggingface = &huggingface};
