/* vit.c - a vision transformer (Dosovitskiy et al., arXiv 2010.11929): square patches of three
 * colours in place of tokens, learned positions, norms before attention and MLP (pre-norm), and a
 * classifier on the mean over all positions.
 *
 * model.seq is the number of patches per image, model.vocab the number of classes. */
#include "common/models/layers.h"

#include <errno.h>

enum { TYPE_EMBED, TYPE_LAYER, TYPE_HEAD, COLOURS = 3 };

/* p are the numbers of a patch, 3 x edge x edge; v the classes. */
static const struct layer_product patches_product = {"patches", "bsp", "ph", "h", "bsh"};
static const struct layer_product classes_product = {"classes", "bh", "hv", "v", "bv"};

static int build(const struct job_model *config, struct graph **out, struct error *err)
{
    int rc = layer_check_heads(config, err);
    if (rc < 0)
        return rc;
    if (config->patch < 1)
        return error_set(err, -EINVAL,
                         "model.patch is missing: family vit needs the edge of a patch, such as 14 "
                         "pixels");
    struct graph *graph = graph_create();
    layer_sizes(graph, config, 4 * config->hidden);
    layer_heads(graph, config);
    sizes_set(&graph->sizes, 'p', COLOURS * config->patch * config->patch);
    int patches = graph_data(graph, "patches", "bsp", false);
    int classes = graph_data(graph, "classes", "b", true);

    graph_block(graph, "embed", TYPE_EMBED);
    int x = layer_linear(graph, &patches_product, "patches", patches, layer_narrow);
    int positions = graph_weight(graph, "positions.weight", "sh", layer_narrow, true);
    x = graph_node(graph, &operation_position, "positions", (int[]){x, positions});

    for (int64_t i = 0; i < config->layers; i++) {
        layer_begin(graph, i, TYPE_LAYER);
        x = layer_prenorm(graph, &operation_attention, x, layer_residual(config->layers));
    }

    graph_block(graph, "head", TYPE_HEAD);
    x = layer_norm(graph, "norm", x);
    x = graph_node(graph, &operation_pool, "mean", (int[]){x});
    x = layer_linear(graph, &classes_product, "classes", x, layer_narrow);
    graph_node_along(graph, "loss", &operation_loss, (const char *[]){"bv", "b", ""}, "loss",
                     (int[]){x, classes});
    *out = graph;
    return 0;
}

const struct model model_vit = {
    .family = "vit", .build = build, .untrained = "no data format has images yet"};
