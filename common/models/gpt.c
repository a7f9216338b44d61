/* gpt.c - GPT-2 (Radford et al. 2019): learned positions, norms before attention and before the
 * two-layer network, tanh GELU, the embedding tied to the head.
 *
 * Initial weights as GPT-2's: deviation 0.02, of the two projections into the residual stream
 * 0.02 / sqrt(2 layers). */
#include "common/models/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

extern const struct operation operation_embed, operation_position, operation_norm, operation_qkv,
    operation_core, operation_out, operation_add, operation_fc1, operation_gelu, operation_fc2,
    operation_logits, operation_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static const struct initializer zero = {0, 0}, one = {1, 0}, narrow = {0, 0.02f};

static int norm(struct graph *graph, const char *name, int input)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    int w = graph_weight(graph, weight, "h", one, false);
    int b = graph_weight(graph, bias, "h", zero, false);
    return graph_node(graph, &operation_norm, name, (int[]){input, w, b});
}

static int linear(struct graph *graph, const struct operation *operation, const char *name,
                  int input, struct initializer with)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    int w = graph_weight(graph, weight, operation->dims[1], with, true);
    int b = graph_weight(graph, bias, operation->dims[2], zero, false);
    return graph_node(graph, operation, name, (int[]){input, w, b});
}

static int layer(struct graph *graph, int64_t index, int input, struct initializer residual)
{
    char name[32];
    snprintf(name, sizeof name, "layers.%lld", (long long)index);
    graph_block(graph, name, TYPE_LAYER);
    int normed = norm(graph, "norm1", input);
    int q = linear(graph, &operation_qkv, "q", normed, narrow);
    int k = linear(graph, &operation_qkv, "k", normed, narrow);
    int v = linear(graph, &operation_qkv, "v", normed, narrow);
    int mixed = graph_node(graph, &operation_core, "core", (int[]){q, k, v});
    int out = linear(graph, &operation_out, "out", mixed, residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    normed = norm(graph, "norm2", middle);
    int wide = linear(graph, &operation_fc1, "fc1", normed, narrow);
    int active = graph_node(graph, &operation_gelu, "gelu", (int[]){wide});
    int back = linear(graph, &operation_fc2, "fc2", active, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, back});
}

static void fill_sizes(struct graph *graph, const struct model_config *config)
{
    sizes_set(&graph->sizes, 's', config->seq);
    sizes_set(&graph->sizes, 'h', config->hidden);
    sizes_set(&graph->sizes, 'n', config->heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
    sizes_set(&graph->sizes, 'f', config->ffn ? config->ffn : 4 * config->hidden);
    sizes_set(&graph->sizes, 'v', config->vocab);
}

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    if (config->hidden % config->heads != 0)
        return error_set(err, -EINVAL,
                         "model.heads %lld does not divide model.hidden %lld; every head needs the "
                         "same whole width",
                         (long long)config->heads, (long long)config->hidden);
    struct graph *graph = graph_create();
    fill_sizes(graph, config);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table = graph_weight(graph, "tokens.weight", "vh", narrow, true);
    int positions = graph_weight(graph, "positions.weight", "sh", narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, table});
    x = graph_node(graph, &operation_position, "positions", (int[]){x, positions});

    struct initializer residual = {0, 0.02f / sqrtf(2 * (float)config->layers)};
    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, i, x, residual);

    graph_block(graph, "head", TYPE_HEAD);
    x = norm(graph, "norm", x);
    x = graph_node(graph, &operation_logits, "logits", (int[]){x, table});
    graph_node(graph, &operation_loss, "loss", (int[]){x, targets});
    *out = graph;
    return 0;
}

const struct model model_gpt = {.family = "gpt", .build = build};
