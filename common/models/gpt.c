/* gpt.c - GPT-2 (Radford et al. 2019): learned positions, norms before attention and before the
 * two-layer network, tanh GELU, the embedding tied to the head. */
#include "common/models/parts.h"

extern const struct operation operation_core, operation_logits, operation_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int build(const struct model_config *config, struct graph **out, struct error *err)
{
    int rc = parts_check_heads(config, err);
    if (rc < 0)
        return rc;
    struct graph *graph = graph_create();
    parts_sizes(graph, config, 4 * config->hidden);
    parts_heads(graph, config);
    int tokens = graph_data(graph, "tokens", "bs", false);
    int targets = graph_data(graph, "targets", "bs", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int table, x = parts_embed(graph, tokens, &table);

    for (int64_t i = 0; i < config->layers; i++) {
        parts_layer(graph, i, TYPE_LAYER);
        x = parts_prenorm(graph, &operation_core, x, parts_residual(config->layers));
    }

    graph_block(graph, "head", TYPE_HEAD);
    x = parts_norm(graph, "norm", x);
    x = graph_node(graph, &operation_logits, "logits", (int[]){x, table});
    graph_node(graph, &operation_loss, "loss", (int[]){x, targets});
    *out = graph;
    return 0;
}

const struct model model_gpt = {.family = "gpt", .build = build};
