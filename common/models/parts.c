/* parts.c - building blocks that model families share. Weights get the names that checkpoints use:
 * "NAME.weight", "NAME.bias". Biases and the weights of norms are exempt from weight decay. */
#include "common/models/parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

extern const struct operation operation_embed, operation_position, operation_norm, operation_qkv,
    operation_out, operation_add, operation_fc1, operation_gelu, operation_fc2;

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

int parts_rmsnorm(struct graph *graph, const struct operation *operation, const char *name,
                  int input)
{
    int w = weight(graph, name, "weight", operation->dims[1], one, false);
    return graph_node(graph, operation, name, (int[]){input, w});
}

int parts_linear(struct graph *graph, const struct operation *operation, const char *name,
                 int input, struct initializer with)
{
    int operands[] = {input, weight(graph, name, "weight", operation->dims[1], with, true), -1};
    if (operation->weight_count > 1)
        operands[2] = weight(graph, name, "bias", operation->dims[2], zero, false);
    return graph_node(graph, operation, name, operands);
}

int parts_embed(struct graph *graph, int tokens, int *table)
{
    *table = graph_weight(graph, "tokens.weight", "vh", parts_narrow, true);
    int positions = graph_weight(graph, "positions.weight", "sh", parts_narrow, true);
    int x = graph_node(graph, &operation_embed, "tokens", (int[]){tokens, *table});
    return graph_node(graph, &operation_position, "positions", (int[]){x, positions});
}

int parts_attention(struct graph *graph, const struct operation *mixing, int input,
                    struct initializer residual)
{
    int q = parts_linear(graph, &operation_qkv, "q", input, parts_narrow);
    int k = parts_linear(graph, &operation_qkv, "k", input, parts_narrow);
    int v = parts_linear(graph, &operation_qkv, "v", input, parts_narrow);
    int mixed = graph_node(graph, mixing, mixing->name, (int[]){q, k, v});
    return parts_linear(graph, &operation_out, "out", mixed, residual);
}

int parts_network(struct graph *graph, int input, struct initializer residual)
{
    int wide = parts_linear(graph, &operation_fc1, "fc1", input, parts_narrow);
    int active = graph_node(graph, &operation_gelu, "gelu", (int[]){wide});
    return parts_linear(graph, &operation_fc2, "fc2", active, residual);
}

int parts_prenorm(struct graph *graph, const struct operation *mixing, int input,
                  struct initializer residual)
{
    int normed = parts_norm(graph, "norm1", input);
    int out = parts_attention(graph, mixing, normed, residual);
    int middle = graph_node(graph, &operation_add, "add1", (int[]){input, out});
    normed = parts_norm(graph, "norm2", middle);
    int back = parts_network(graph, normed, residual);
    return graph_node(graph, &operation_add, "add2", (int[]){middle, back});
}

void parts_layer(struct graph *graph, int64_t index, int type)
{
    char name[32];
    snprintf(name, sizeof name, "layers.%lld", (long long)index);
    graph_block(graph, name, type);
}

static void set_rotation(const struct model_config *config, struct rotation *out)
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

void parts_sizes(struct graph *graph, const struct model_config *config, int64_t ffn)
{
    sizes_set(&graph->sizes, 's', config->seq);
    sizes_set(&graph->sizes, 'h', config->hidden);
    sizes_set(&graph->sizes, 'f', config->ffn ? config->ffn : ffn);
    sizes_set(&graph->sizes, 'v', config->vocab);
    if (config->epsilon > 0)
        graph->epsilon = (float)config->epsilon;
    set_rotation(config, &graph->rotation);
}

void parts_heads(struct graph *graph, const struct model_config *config)
{
    sizes_set(&graph->sizes, 'n', config->heads);
    sizes_set(&graph->sizes, 'd', config->hidden / config->heads);
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
