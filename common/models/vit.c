/* vit.c - a vision transformer (Dosovitskiy et al., arXiv 2010.11929): square patches of three
 * colours in place of tokens, learned positions, norms before attention and network, and a
 * classifier of the mean of all places.
 *
 * model.seq counts the patches of an image, model.vocab the classes. */
#include "common/models/parts.h"

#include <errno.h>

extern const struct operation operation_patch, operation_position, operation_qkv, operation_attend,
    operation_out, operation_add, operation_fc1, operation_gelu, operation_fc2, operation_pool,
    operation_classify, operation_class_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD, COLOURS = 3 };

static int layer(struct graph *graph, int64_t index, int input, struct initializer residual)
{
    parts_layer(graph, index, TYPE_LAYER);
    int normed = parts_norm(graph, "norm1", input);
    int q = parts_linear(graph, &operation_qkv, "q", normed, parts_narrow);
    int k = parts_linear(graph, &operation_qkv, "k", normed, parts_narrow);
    int v = parts_linear(graph, &operation_qkv, "v", normed, parts_narrow);
    int mixed = graph_node(graph, &operation_attend, "attend", (int[]){q, k, v});
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
    if (config->patch < 1)
        return error_set(err, -EINVAL,
                         "model.patch is missing: family vit needs the edge of a patch, such as 14 "
                         "pixels");
    struct graph *graph = graph_create();
    parts_sizes(graph, config, 4 * config->hidden);
    sizes_set(&graph->sizes, 'n', config->heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
    sizes_set(&graph->sizes, 'p', COLOURS * config->patch * config->patch);
    int patches = graph_data(graph, "patches", "bsp", false);
    int classes = graph_data(graph, "classes", "b", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int x = parts_linear(graph, &operation_patch, "patches", patches, parts_narrow);
    int positions = graph_weight(graph, "positions.weight", "sh", parts_narrow, true);
    x = graph_node(graph, &operation_position, "positions", (int[]){x, positions});

    for (int64_t i = 0; i < config->layers; i++)
        x = layer(graph, i, x, parts_residual(config->layers));

    graph_block(graph, "head", TYPE_HEAD);
    x = parts_norm(graph, "norm", x);
    x = graph_node(graph, &operation_pool, "mean", (int[]){x});
    x = parts_linear(graph, &operation_classify, "classes", x, parts_narrow);
    graph_node(graph, &operation_class_loss, "loss", (int[]){x, classes});
    *out = graph;
    return 0;
}

const struct model model_vit = {
    .family = "vit", .build = build, .untrained = "no data format has images yet"};
