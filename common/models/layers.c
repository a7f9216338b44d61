/* layers.c - what model families are built from. Weights get the names that checkpoints use:
 * "NAME.weight", "NAME.bias". Biases and the weights of norms are exempt from weight decay. */
#include "common/models/layers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const struct initializer zero = {0, 0}, one = {1, 0};
const struct initializer layer_narrow = {0, 0.02f};

struct initializer layer_residual(int64_t layers)
{
    return (struct initializer){0, 0.02f / sqrtf(2 * (float)layers)};
}

static int weight(struct graph *graph, const char *name, const char *what, const char *dims,
                  struct initializer with, bool decays)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", name, what);
    return graph_weight(graph, whole, dims, with, decays);
}

int layer_norm(struct graph *graph, const char *name, int input)
{
    int w = weight(graph, name, "weight", "h", one, false);
    int b = weight(graph, name, "bias", "h", zero, false);
    return graph_node(graph, &operation_norm, name, (int[]){input, w, b});
}

static const struct layer_product qkv = {"qkv", "bsh", "hnd", "nd", "bsnd"};
static const struct layer_product out_of_heads = {"out", "bsnd", "ndh", "h", "bsh"};
/* The weight is (v, h) like the embedding table, so that the two can be tied. */
static const struct layer_product logits = {"logits", "bsh", "vh", NULL, "bsv"};
static const struct layer_product fc1 = {"fc1", "bsh", "hf", "f", "bsf"};
static const struct layer_product fc2 = {"fc2", "bsf", "fh", "h", "bsh"};

static int product_node(struct graph *graph, const struct layer_product *product, const char *name,
                        int input, int w, int b)
{
    const char *without[] = {product->x, product->w, product->y};
    const char *with[] = {product->x, product->w, product->b, product->y};
    return graph_node_along(graph, product->name,
                            product->b ? &operation_linear : &operation_matmul,
                            product->b ? with : without, name, (int[]){input, w, b});
}

int layer_linear(struct graph *graph, const struct layer_product *product, const char *name,
                 int input, struct initializer with)
{
    int w = weight(graph, name, "weight", product->w, with, true);
    int b = product->b ? weight(graph, name, "bias", product->b, zero, false) : -1;
    return product_node(graph, product, name, input, w, b);
}

void layer_head(struct graph *graph, int input, int head, int targets)
{
    int x = product_node(graph, &logits, "logits", input, head, -1);
    graph_node_along(graph, "loss", &operation_loss, (const char *[]){"bsv", "bs", ""}, "loss",
                     (int[]){x, targets});
}

int layer_embed(struct graph *graph, int tokens, int *table)
{
    *table = graph_weight(graph, "tokens.weight", "vh", layer_narrow, true);
    int positions = graph_weight(graph, "positions.weight", "sh", layer_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, *table});
    return graph_node(graph, &operation_position, "positions", (int[]){x, positions});
}

int layer_attention(struct graph *graph, const struct operation *mixing, int input,
                    struct initializer residual)
{
    int q = layer_linear(graph, &qkv, "q", input, layer_narrow);
    int k = layer_linear(graph, &qkv, "k", input, layer_narrow);
    int v = layer_linear(graph, &qkv, "v", input, layer_narrow);
    int mixed = graph_node_along(graph, mixing->name, mixing,
                                 (const char *[]){"bsnd", "btnd", "btnd", "bsnd"}, "attention",
                                 (int[]){q, k, v});
    return layer_linear(graph, &out_of_heads, "out", mixed, residual);
}

int layer_mlp(struct graph *graph, int input, struct initializer residual)
{
    int wide = layer_linear(graph, &fc1, "fc1", input, layer_narrow);
    int active = graph_node(graph, &operation_gelu, "gelu", (int[]){wide});
    return layer_linear(graph, &fc2, "fc2", active, residual);
}

int layer_prenorm(struct graph *graph, const struct operation *mixing, int input,
                  struct initializer residual)
{
    int normed = layer_norm(graph, "norm1", input);
    int out = layer_attention(graph, mixing, normed, residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    normed = layer_norm(graph, "norm2", middle);
    int back = layer_mlp(graph, normed, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, back});
}

void layer_begin(struct graph *graph, int64_t index, int type)
{
    char name[32];
    snprintf(name, sizeof name, "layers.%lld", (long long)index);
    graph_block(graph, name, type);
}

static void set_rotation(const struct job_model *config, struct rotation *out)
{
    const struct job_rope_scaling *scaling = &config->rope_scaling;
    if (config->rope_theta > 0)
        out->base = (float)config->rope_theta;
    if (scaling->rope_type == JOB_ROPE_DEFAULT)
        return;
    out->factor = (float)scaling->factor;
    out->low = out->high = INFINITY;
    if (scaling->rope_type == JOB_ROPE_LLAMA3) {
        out->low = (float)scaling->low_freq_factor;
        out->high = (float)scaling->high_freq_factor;
        out->places = (float)scaling->original_max_position_embeddings;
    }
}

void layer_sizes(struct graph *graph, const struct job_model *config, int64_t ffn)
{
    sizes_set(&graph->sizes, 's', config->seq);
    sizes_set(&graph->sizes, 'h', config->hidden);
    sizes_set(&graph->sizes, 'f', config->ffn ? config->ffn : ffn);
    sizes_set(&graph->sizes, 'v', config->vocab);
    if (config->norm_epsilon > 0)
        graph->epsilon = (float)config->norm_epsilon;
    set_rotation(config, &graph->rotation);
}

void layer_heads(struct graph *graph, const struct job_model *config)
{
    sizes_set(&graph->sizes, 'n', config->heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
}

int layer_check_heads(const struct job_model *config, struct error *err)
{
    if (config->hidden % config->heads != 0)
        return error_set(err, -EINVAL,
                         "model.heads %lld does not divide model.hidden %lld; every head needs the "
                         "same whole width",
                         (long long)config->heads, (long long)config->hidden);
    return 0;
}
