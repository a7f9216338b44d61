/* parts.h - what the families have in common: operations with their weights, and usual sizes. */
#ifndef COMMON_MODELS_PARTS_H
#define COMMON_MODELS_PARTS_H

#include "common/models/model.h"

/* Deviations of initial weights: of most; of projections into the residual stream, of which there
 * are two per layer (GPT-2's way: 0.02 / sqrt(2 layers)). */
extern const struct initializer parts_narrow;
struct initializer parts_residual(int64_t layers);

/* Layer normalisation with weight and bias; root-mean-square with a weight alone. */
int parts_norm(struct graph *graph, const char *name, int input);
int parts_rmsnorm(struct graph *graph, const struct operation *operation, const char *name,
                  int input);
/* A matrix product with its weight and, where the operation has two weights, its bias. */
int parts_linear(struct graph *graph, const struct operation *operation, const char *name,
                 int input, struct initializer with);
/* Tokens by a table, lent to a head that shares it, and their learned positions. */
int parts_embed(struct graph *graph, int tokens, int *table);
/* The two halves of a layer with biases and as many heads of keys and values as of queries, each
 * ending in a projection into the residual stream: heads mixed over places by this operation; a
 * wider layer with GELU. */
int parts_attention(struct graph *graph, const struct operation *mixing, int input,
                    struct initializer residual);
int parts_network(struct graph *graph, int input, struct initializer residual);
/* Both, each added to what went in, behind a norm of it (GPT-2's order). */
int parts_prenorm(struct graph *graph, const struct operation *mixing, int input,
                  struct initializer residual);
/* "layers.3": opens the block. */
void parts_layer(struct graph *graph, int64_t index, int type);

/* Samples' and layers' sizes of the dims that all families have: s, h, f, v; and the numbers of
 * nodes. ffn: where the configuration names none. */
void parts_sizes(struct graph *graph, const struct model_config *config, int64_t ffn);
/* And of n and d, for parts_attention. */
void parts_heads(struct graph *graph, const struct model_config *config);
/* -EINVAL: heads do not divide the hidden width. */
int parts_check_heads(const struct model_config *config, struct error *err);

#endif
