/* gpt.c - GPT-2 (Radford et al. 2019): learned positions, norms before attention and before the
 * two-layer network, tanh GELU, the embedding tied to the head. */
#include "common/models/parts.h"

extern const struct operation operation_embed, operation_position, operation_qkv, operation_core,
    operation_out, operation_add, operation_fc1, operation_gelu, operation_fc2, operation_logits,
    operation_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int layer(struct graph *graph, int64_t index, int input, struct initializer residual)
{
    parts_layer(graph, index, TYPE_LAYER);
    int normed = parts_norm(graph, "norm1", input);
    int q = parts_linear(graph, &operation_qkv, "q", normed, parts_narrow);
    int k = parts_linear(graph, &operation_qkv, "k", normed, parts_narrow);
    int v = parts_linear(graph, &operation_qkv, "v", normed, parts_narrow);
    int mixed = graph_node(graph, &operation_core, "core", (int[]){q, k, v});
    int out = parts_linear(graph, &operation_out, "out", mixed, residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    normed = parts_norm(graph, "norm2", middle);
    int wide = parts_linear(graph, &operation_fc1, "fc1", normed, parts_narrow);
    int active = graph_node(graph, &operation_gelu, "gelu", (int[]){wide});
    int back = parts_linear(graph, &operation_fc2, "fc2", active, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, back});
}

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    int rc = parts_check_heads(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    parts_sizes(graph, config, 4 * config->hidden);
    sizes_set(&graph->sizes, 'n', config->heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table = graph_weight(graph, "tokens.weight", "vh", parts_narrow, true);
    int positions = graph_weight(graph, "positions.weight", "sh", parts_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, table});
    x = graph_node(graph, &operation_position, "positions", (int[]){x, positions});

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, i, x, parts_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    x = parts_norm(graph, "norm", x);
    x = graph_node(graph, &operation_logits, "logits", (int[]){x, table});
    graph_node(graph, &operation_loss, "loss", (int[]){x, targets});
    *out = graph;
    return 0;
}

const struct model model_gpt = {.family = "gpt", .build = build};
