/* decoder.c - LLaMA and its descendants: RMSNorm, rotary positions, grouped-query attention, a
 * gated MLP, and an output head that is either separate or tied to the embedding. Three families,
 * which differ in a few lines: the rows at the end.
 *
 * The default MLP width is LLaMA's: 8/3 of hidden (two thirds of 4 hidden), rounded up to a
 * multiple of 256. */
#include "common/models/huggingface.h"
#include "common/models/layers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

/* What tells the families apart. */
struct decoder {
    bool biases;     /* on queries, keys and values */
    bool head_norms; /* on every query and key head, before rotation */
};

/* Into heads: g query heads for each of k heads of keys and values; and back into the stream. */
static const struct layer_product query = {"query", "bsh", "hkgd", NULL, "bskgd"};
static const struct layer_product query_with_bias = {"query", "bsh", "hkgd", "kgd", "bskgd"};
static const struct layer_product keyvalue = {"keyvalue", "bsh", "hkd", NULL, "bskd"};
static const struct layer_product keyvalue_with_bias = {"keyvalue", "bsh", "hkd", "kd", "bskd"};
static const struct layer_product out_of_heads = {"out", "bskgd", "kgdh", NULL, "bsh"};
/* The gated MLP. */
static const struct layer_product gate = {"gate", "bsh", "hf", NULL, "bsf"};
static const struct layer_product up = {"up", "bsh", "hf", NULL, "bsf"};
static const struct layer_product down = {"down", "bsf", "fh", NULL, "bsh"};

/* Root-mean-square normalisation of x, which has these dims, over its last one. */
static int rmsnorm(struct graph *graph, const char *kind, const char *name, const char *dims,
                   int input)
{
    char whole[64];
    const char *last = dims + strlen(dims) - 1;
    snprintf(whole, sizeof whole, "%s.weight", name);
    int w = graph_weight(graph, whole, last, (struct initializer){1, 0}, false);
    return graph_node_along(graph, kind, &operation_rmsnorm, (const char *[]){dims, last, dims},
                            name, (int[]){input, w});
}

static int rotate(struct graph *graph, const char *name, const char *dims, int input)
{
    return graph_node_along(graph, "rotary", &operation_rotary, (const char *[]){dims, dims}, name,
                            &input);
}

static int attention(struct graph *graph, const struct decoder *decoder, int input,
                     struct initializer residual)
{
    const struct layer_product *queries = decoder->biases ? &query_with_bias : &query;
    const struct layer_product *others = decoder->biases ? &keyvalue_with_bias : &keyvalue;
    int q = layer_linear(graph, queries, "q", input, layer_narrow);
    int k = layer_linear(graph, others, "k", input, layer_narrow);
    int v = layer_linear(graph, others, "v", input, layer_narrow);
    if (decoder->head_norms) {
        q = rmsnorm(graph, "query_norm", "q_norm", "bskgd", q);
        k = rmsnorm(graph, "key_norm", "k_norm", "bskd", k);
    }
    q = rotate(graph, "q.turned", "bskgd", q);
    k = rotate(graph, "k.turned", "bskd", k);
    int mixed = graph_node_along(graph, "grouped_attention", &operation_causal_attention,
                                 (const char *[]){"bskgd", "btkd", "btkd", "bskgd"}, "attention",
                                 (int[]){q, k, v});
    return layer_linear(graph, &out_of_heads, "out", mixed, residual);
}

static int layer(struct graph *graph, const struct decoder *decoder, int64_t index, int input,
                 struct initializer residual)
{
    layer_begin(graph, index, TYPE_LAYER);
    int mixed =
        attention(graph, decoder, rmsnorm(graph, "rmsnorm", "norm1", "bsh", input), residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, mixed});
    int normed = rmsnorm(graph, "rmsnorm", "norm2", "bsh", middle);
    int gated = layer_linear(graph, &gate, "gate", normed, layer_narrow);
    int wide = layer_linear(graph, &up, "up", normed, layer_narrow);
    int active = graph_node(graph, &operation_swiglu, "swiglu", (int[]){gated, wide});
    int back = layer_linear(graph, &down, "down", active, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, back});
}

static int check_sizes(const struct job_model *config, struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = config->head_dim ? 0 : layer_check_heads(config, err);
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

static int build(const struct job_model *config, const struct decoder *decoder, struct graph **out,
                 struct error *err)
{
    int64_t kv_heads = config->kv_heads ? config->kv_heads : config->heads;
    int rc = check_sizes(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    layer_sizes(graph, config, (8 * config->hidden / 3 + 255) / 256 * 256);
    sizes_set(&graph->sizes, 'k', kv_heads);
    sizes_set(&graph->sizes, 'g', config->heads / kv_heads);
    sizes_set(&graph->sizes, 'd',
              config->head_dim ? config->head_dim : config->hidden / config->heads);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table = graph_weight(graph, "tokens.weight", "vh", layer_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, table});

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, decoder, i, x, layer_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    x = rmsnorm(graph, "rmsnorm", "norm", "bsh", x);
    int head = config->tied == ANSWER_YES
                   ? table
                   : graph_weight(graph, "logits.weight", "vh", layer_narrow, true);
    layer_head(graph, x, head, targets);
    *out = graph;
    return 0;
}

/* ---- as transformers has them ---- */

static int64_t head_width(const struct graph *graph)
{
    return huggingface_size(graph, "layers.0.k.weight", 'd');
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
static json_t *describe_shared(const struct job_model *config, const struct graph *graph,
                               const char *model_type, const char *architecture)
{
    double theta = (double)graph->rotation.base;
    bool scaled = config->rope_scaling.rope_type != JOB_ROPE_DEFAULT;
    json_t *parameters = describe_rotation(&config->rope_scaling);
    json_object_set_new(parameters, "rope_theta", json_real(theta));
    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:o, s:f, s:b, s:I, "
        "s:n, s:n, s:s}",
        "model_type", model_type, "architectures", architecture, "vocab_size",
        (json_int_t)config->vocab, "max_position_embeddings", (json_int_t)config->seq,
        "hidden_size", (json_int_t)config->hidden, "intermediate_size",
        (json_int_t)huggingface_size(graph, "layers.0.gate.weight", 'f'), "num_hidden_layers",
        (json_int_t)config->layers, "num_attention_heads", (json_int_t)config->heads,
        "num_key_value_heads", (json_int_t)huggingface_size(graph, "layers.0.k.weight", 'k'),
        "hidden_act", "silu", "rms_norm_eps", (double)graph->epsilon, "rope_theta", theta,
        "rope_scaling", scaled ? describe_rotation(&config->rope_scaling) : json_null(),
        "rope_parameters", parameters, "initializer_range", 0.02, "tie_word_embeddings",
        config->tied == ANSWER_YES, "head_dim", (json_int_t)head_width(graph), "bos_token_id",
        "eos_token_id", "torch_dtype", "float32");
}

/* The weights as transformers stores them. Its projections are matrices of outputs by inputs, ours
 * of inputs by outputs; rotary pairs are element i of each half of a head, as ours. */
/* clang-format off */
#define SHARED_ROWS                                                                               \
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
/* clang-format on */

static const struct huggingface_key shared_compared[] = {
    {"hidden_size", "4096"},
    {"num_hidden_layers", "32"},
    {"num_attention_heads", "32"},
    {"hidden_act", "\"silu\""},
    {"rms_norm_eps", "1e-6"},
    {"tie_word_embeddings", "false"},
    {"rope_parameters", .nullable = true},
    {"rope_scaling", .nullable = true, .read = true},
    {"rope_theta", .nullable = true},
    {"partial_rotary_factor", .nullable = true, .read = true},
    {"original_max_position_embeddings", .nullable = true, .read = true},
    {"rope_interleaved", "false"},
    {"use_mrope", "false"},
    {NULL},
};
/* Those that only some types know are compared there. */
static const char *const shared_nothing[] = {"add_cross_attention",
                                             "attention_bias",
                                             "max_window_layers",
                                             "mlp_bias",
                                             "pretraining_tp",
                                             "use_sliding_window",
                                             NULL};

static const char *const swish[] = {"swish", NULL};

static void set_default(json_t *object, const char *key, const json_t *value)
{
    if (!json_object_get(object, key) && value)
        json_object_set(object, key, (json_t *)value);
}

static bool is_one(const json_t *value)
{
    return json_is_number(value) && json_number_value(value) == 1;
}

/* Pairs that turn as they do without scaling need no word of it. */
static void settle_unscaled(json_t *rope)
{
    static const char *const keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings", NULL};
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    bool slowed = type && (strcmp(type, "linear") == 0 || strcmp(type, "llama3") == 0);
    if (slowed && is_one(json_object_get(rope, "factor")))
        json_object_set_new(rope, "rope_type", json_string("default"));
    else if (!type || strcmp(type, "default") != 0)
        return;
    for (int i = 0; keys[i]; i++)
        json_object_del(rope, keys[i]);
}

/* Write in rope_parameters what release 5 of transformers turns pairs by: of rope_scaling and
 * rope_parameters the first that says anything. Until release 4.43 it wrote "type" for
 * "rope_type". Releases before 5 go by rope_theta wherever it is, so it is compared, too. */
static void settle_rotation(json_t *theirs)
{
    const json_t *scaling = json_object_get(theirs, "rope_scaling");
    const json_t *said = json_object_get(theirs, "rope_parameters");
    const json_t *theta = json_object_get(theirs, "rope_theta");
    const json_t *length = json_object_get(theirs, "original_max_position_embeddings");
    json_t *rope = json_object_size(scaling)     ? json_deep_copy(scaling)
                   : said && !json_is_null(said) ? json_deep_copy(said)
                                                 : json_object();
    json_t *standard = json_real(10000), *name = json_string("default");
    set_default(rope, "rope_theta", theta ? theta : standard);
    set_default(theirs, "rope_theta", json_object_get(rope, "rope_theta"));
    set_default(rope, "rope_type", json_object_get(rope, "type"));
    set_default(rope, "rope_type", name);
    json_object_del(rope, "type");
    set_default(rope, "partial_rotary_factor", json_object_get(theirs, "partial_rotary_factor"));
    if (is_one(json_object_get(rope, "partial_rotary_factor")))
        json_object_del(rope, "partial_rotary_factor");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    if (type && strcmp(type, "llama3") == 0) {
        if (length)
            json_object_set(rope, "original_max_position_embeddings", (json_t *)length);
        set_default(rope, "original_max_position_embeddings",
                    json_object_get(theirs, "max_position_embeddings"));
    }
    settle_unscaled(rope);
    json_object_set_new(theirs, "rope_parameters", rope);
    json_decref(standard);
    json_decref(name);
}

/* The number under this key; -1: none. */
static int64_t number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void settle_shared(json_t *theirs)
{
    int64_t heads = number_of(theirs, "num_attention_heads");
    const json_t *width = json_object_get(theirs, "head_dim");
    if (json_is_null(json_object_get(theirs, "num_key_value_heads")))
        json_object_set_new(theirs, "num_key_value_heads", json_integer(heads));
    if ((!width || json_is_null(width)) && heads > 0)
        json_object_set_new(theirs, "head_dim",
                            json_integer(number_of(theirs, "hidden_size") / heads));
    huggingface_settle_word(theirs, "hidden_act", swish, "silu");
    settle_rotation(theirs);
}

/* ---- LLaMA (Touvron et al., arXiv 2302.13971 and 2307.09288): no biases ---- */

static int build_llama(const struct job_model *config, struct graph **graph, struct error *err)
{
    return build(config, &(struct decoder){0}, graph, err);
}

static json_t *describe_llama(const struct job_model *config, const struct graph *graph)
{
    json_t *root = describe_shared(config, graph, "llama", "LlamaForCausalLM");
    json_object_set_new(root, "attention_bias", json_false());
    json_object_set_new(root, "mlp_bias", json_false());
    return root;
}

static const struct huggingface_row llama_rows[] = {SHARED_ROWS, {NULL}};
static const struct huggingface_key llama_compared[] = {
    {"vocab_size", "32000", .dim = 'v', .more = HUGGINGFACE_PADDING_MAX},
    {"intermediate_size", "11008"},
    {"num_key_value_heads", "null", .nullable = true},
    {"head_dim", .nullable = true},
    {"max_position_embeddings", "2048", .read = true},
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {NULL},
};
static const char *const llama_refused[] = {"sliding_window", NULL};

/* Mistral (Jiang et al., arXiv 2310.06825): the same with a sliding window, which later releases do
 * without. */
static const struct huggingface_key mistral_compared[] = {
    {"vocab_size", "32000", .dim = 'v', .more = HUGGINGFACE_PADDING_MAX},
    {"intermediate_size", "14336"},
    {"num_key_value_heads", "8"},
    {"head_dim", .nullable = true},
    {"max_position_embeddings", "131072", .read = true},
    {"sliding_window", "4096", .nullable = true},
    {NULL},
};

static const struct huggingface_type llama_types[] = {
    {"llama", {llama_compared, NULL, llama_refused}},
    {"mistral", {mistral_compared, NULL, NULL}},
    {NULL, {0}},
};

/* A window of as many positions as a sample has reaches all of them. */
static void settle_llama(json_t *theirs, const struct job_model *config)
{
    settle_shared(theirs);
    if (number_of(theirs, "sliding_window") >= config->seq)
        json_object_set_new(theirs, "sliding_window", json_null());
}

static const struct huggingface llama = {.rows = llama_rows,
                                         .prefix = "model.",
                                         .config = describe_llama,
                                         .types = llama_types,
                                         .keys = {shared_compared, shared_nothing, NULL},
                                         .settle = settle_llama};

const struct model model_llama = {
    .family = "llama", .build = build_llama, .ties = true, .huggingface = &llama};

/* ---- Qwen2 (Yang et al., arXiv 2407.10671), Qwen2.5 (arXiv 2412.15115): biases on queries, keys
 * and values. The published models, and those of Qwen3, use a norm epsilon of 1e-6 and a rotary
 * base of one million, to be set as model.norm_epsilon and model.rope_theta; in the small ones the
 * head is tied to the embedding (model.tied) ---- */

static int build_qwen(const struct job_model *config, struct graph **graph, struct error *err)
{
    return build(config, &(struct decoder){.biases = true}, graph, err);
}

/* Attention is over all earlier positions; with use_sliding_window false the value of
 * sliding_window has no effect. */
static void describe_no_window(json_t *root)
{
    json_object_set_new(root, "use_sliding_window", json_false());
    json_object_set_new(root, "sliding_window", json_null());
}

static json_t *describe_qwen(const struct job_model *config, const struct graph *graph)
{
    json_t *root = describe_shared(config, graph, "qwen2", "Qwen2ForCausalLM");
    describe_no_window(root);
    return root;
}

static const struct huggingface_row qwen_rows[] = {
    SHARED_ROWS,
    {"model.layers.#.self_attn.q_proj.bias", "kgd", {"layers.#.q.bias"}},
    {"model.layers.#.self_attn.k_proj.bias", "kd", {"layers.#.k.bias"}},
    {"model.layers.#.self_attn.v_proj.bias", "kd", {"layers.#.v.bias"}},
    {NULL},
};
/* What Qwen2 and Qwen3 say of windows. */
#define QWEN_COMPARED                                                                              \
    {"vocab_size", "151936", .dim = 'v', .more = HUGGINGFACE_PADDING_MAX},                         \
        {"intermediate_size", "22016"}, {"num_key_value_heads", "32", .nullable = true},           \
        {"max_position_embeddings", "32768", .read = true},                                        \
        {"use_sliding_window", "false", .read = true},                                             \
        {"sliding_window", "4096", .nullable = true}, {"max_window_layers", "28", .read = true},   \
    {                                                                                              \
        "layer_types", .nullable = true                                                            \
    }

static const struct huggingface_key qwen_compared[] = {QWEN_COMPARED, {"head_dim"}, {NULL}};
static const struct huggingface_type qwen_types[] = {{"qwen2", {qwen_compared, NULL, NULL}},
                                                     {NULL, {0}}};

/* How many of layer_types are this one. */
static int64_t count_layers(const json_t *layers, const char *type)
{
    const json_t *layer;
    int64_t count = 0;
    size_t i;
    json_array_foreach(layers, i, layer)
    {
        count += json_is_string(layer) && strcmp(json_string_value(layer), type) == 0;
    }
    return count;
}

/* A layer has a window if layer_types says so or, without that, if it is beyond max_window_layers.
 * There is one if use_sliding_window is true. */
static void settle_qwen(json_t *theirs, const struct job_model *config)
{
    const json_t *layers = json_object_get(theirs, "layer_types");
    bool used = json_is_true(json_object_get(theirs, "use_sliding_window"));
    bool reaches = used && number_of(theirs, "sliding_window") >= config->seq;
    bool listed = json_is_array(layers);
    int64_t full = count_layers(layers, "full_attention") + count_layers(layers, "attention"),
            windows = count_layers(layers, "sliding_attention");
    bool none = listed ? windows == 0 : number_of(theirs, "max_window_layers") >= config->layers;
    settle_shared(theirs);
    if (listed && (int64_t)json_array_size(layers) == config->layers &&
        full + windows == config->layers && (windows == 0 || used))
        json_object_set_new(theirs, "layer_types", json_null());
    if (!used || reaches || none)
        json_object_set_new(theirs, "sliding_window", json_null());
}

static const struct huggingface qwen = {.rows = qwen_rows,
                                        .prefix = "model.",
                                        .config = describe_qwen,
                                        .types = qwen_types,
                                        .keys = {shared_compared, shared_nothing, NULL},
                                        .settle = settle_qwen};

const struct model model_qwen = {
    .family = "qwen", .build = build_qwen, .ties = true, .huggingface = &qwen};

/* ---- the dense models of Qwen3 (Yang et al., arXiv 2505.09388): a norm on every query and key
 * head, and a head width of its own, model.head_dim ---- */

static int build_qwen3(const struct job_model *config, struct graph **graph, struct error *err)
{
    return build(config, &(struct decoder){.head_norms = true}, graph, err);
}

static json_t *describe_qwen3(const struct job_model *config, const struct graph *graph)
{
    json_t *root = describe_shared(config, graph, "qwen3", "Qwen3ForCausalLM");
    json_object_set_new(root, "attention_bias", json_false());
    describe_no_window(root);
    return root;
}

static const struct huggingface_row qwen3_rows[] = {
    SHARED_ROWS,
    {"model.layers.#.self_attn.q_norm.weight", "d", {"layers.#.q_norm.weight"}},
    {"model.layers.#.self_attn.k_norm.weight", "d", {"layers.#.k_norm.weight"}},
    {NULL},
};
static const struct huggingface_key qwen3_compared[] = {
    QWEN_COMPARED, {"head_dim", "128"}, {"attention_bias", "false"}, {NULL}};
static const struct huggingface_type qwen3_types[] = {{"qwen3", {qwen3_compared, NULL, NULL}},
                                                      {NULL, {0}}};
static const struct huggingface qwen3 = {.rows = qwen3_rows,
                                         .prefix = "model.",
                                         .config = describe_qwen3,
                                         .types = qwen3_types,
                                         .keys = {shared_compared, shared_nothing, NULL},
                                         .settle = settle_qwen};

const struct model model_qwen3 = {
    .family = "qwen3", .build = build_qwen3, .ties = true, .huggingface = &qwen3};
