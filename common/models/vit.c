/* vit.c - a vision transformer (Dosovitskiy et al., arXiv 2010.11929): square patches of three
 * colours in place of tokens, learned positions, norms before attention and MLP (pre-norm), and a
 * classifier on the mean over all positions.
 *
 * model.seq is the number of patches per image, model.vocab the number of classes. */
#include "common/models/parts.h"

#include <errno.h>

extern const struct operation operation_patch, operation_position, operation_attend, operation_pool,
    operation_classify, operation_class_loss;

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD, COLOURS = 3 };

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
    parts_heads(graph, config);
    sizes_set(&graph->sizes, 'p', COLOURS * config->patch * config->patch);
    int patches = graph_data(graph, "patches", "bsp", false);
    int classes = graph_data(graph, "classes", "b", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int x = parts_linear(graph, &operation_patch, "patches", patches, parts_narrow);
    int positions = graph_weight(graph, "positions.weight", "sh", parts_narrow, true);
    x = graph_node(graph, &operation_position, "positions", (int[]){x, positions});

    for (int64_t i = 0; i < config->layers; i++) {
        parts_layer(graph, i, TYPE_LAYER);
        x = parts_prenorm(graph, &operation_attend, x, parts_residual(config->layers));
    }

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
