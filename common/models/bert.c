/* bert.c - BERT, an encoder (Devlin et al., arXiv 1810.04805): every position attends to all
 * others, norms follow the two residual sums of a layer (post-norm) and the embedding, and the head
 * is tied to the embedding.
 *
 * As in RoBERTa (arXiv 1907.11692) there are no segment embeddings. Unlike in the papers, no extra
 * layer stands between the last norm and the logits. */
#include "common/models/layers.h"

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD };

static int layer(struct graph *graph, int64_t index, int input, struct initializer residual)
{
    layer_begin(graph, index, TYPE_LAYER);
    int out = layer_attention(graph, &operation_attention, input, residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    middle = layer_norm(graph, "norm1", middle);
    int back = layer_mlp(graph, middle, residual);
    int sum = graph_node(graph, &operation_add, "add2", (int[]){middle, back});
    return layer_norm(graph, "norm2", sum);
}

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
    x = layer_norm(graph, "norm", x);

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, i, x, layer_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    layer_head(graph, x, table, targets);
    *out = graph;
    return 0;
}

const struct model model_bert = {
    .family = "bert", .build = build, .untrained = "no data is masked for it yet"};
