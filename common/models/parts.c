/* parts.c - names of weights are those of checkpoints: "NAME.weight", "NAME.bias". */
#include "common/models/parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

extern const struct operation operation_norm, operation_rmsnorm;

static const struct initializer zero = {0, 0}, one = {1, 0};
const struct initializer parts_narrow = {0, 0.02f};

struct initializer parts_residual(int64_t layers)
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

int parts_norm(struct graph *graph, const char *name, int input)
{
    int w = weight(graph, name, "weight", "h", one, false);
    int b = weight(graph, name, "bias", "h", zero, false);
    return graph_node(graph, &operation_norm, name, (int[]){input, w, b});
}

int parts_rmsnorm(struct graph *graph, const char *name, int input)
{
    int w = weight(graph, name, "weight", "h", one, false);
    return graph_node(graph, &operation_rmsnorm, name, (int[]){input, w});
}

int parts_linear(struct graph *graph, const struct operation *operation, const char *name,
                 int input, struct initializer with)
{
    int operands[] = {input, weight(graph, name, "weight", operation->dims[1], with, true), -1};
    if (operation->weight_count > 1)
        operands[2] = weight(graph, name, "bias", operation->dims[2], zero, false);
    return graph_node(graph, operation, name, operands);
}

void parts_layer(struct graph *graph, int64_t index, int type)
{
    char name[32];
    snprintf(name, sizeof name, "layers.%lld", (long long)index);
    graph_block(graph, name, type);
}

void parts_sizes(struct graph *graph, const struct model_config *config, int64_t ffn)
{
    sizes_set(&graph->sizes, 's', config->seq);
    sizes_set(&graph->sizes, 'h', config->hidden);
    sizes_set(&graph->sizes, 'f', config->ffn ? config->ffn : ffn);
    sizes_set(&graph->sizes, 'v', config->vocab);
}

int parts_check_heads(const struct model_config *config, struct error *err)
{
    if (config->hidden % config->heads != 0)
        return error_set(err, -EINVAL,
                         "model.heads %lld does not divide model.hidden %lld; every head needs the "
                         "same whole width",
                         (long long)config->heads, (long long)config->hidden);
    return 0;
}
