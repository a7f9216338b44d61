/* parts.h - building blocks that model families share: operations together with their weights, and
 * the usual sizes.
 *
 * Functions append to the graph's open block. `input` and results are tensor numbers. A part called
 * `name` has the weights "BLOCK.name.weight" and, if any, "BLOCK.name.bias". */
#ifndef COMMON_MODELS_PARTS_H
#define COMMON_MODELS_PARTS_H

#include "common/models/model.h"

/* The normal distribution of most initial weights, with deviation 0.02. */
extern const struct initializer parts_narrow;
/* That of projections into the residual stream, of which there are two per layer: deviation
 * 0.02 / sqrt(2 layers), as in GPT-2. */
struct initializer parts_residual(int64_t layers);

/* Layer normalisation, with weight and bias. */
int parts_norm(struct graph *graph, const char *name, int input);
/* Root-mean-square normalisation by this operation, with a weight only. */
int parts_rmsnorm(struct graph *graph, const struct operation *operation, const char *name,
                  int input);
/* A matrix product with its weight and, where the operation has two weights, its bias. */
int parts_linear(struct graph *graph, const struct operation *operation, const char *name,
                 int input, struct initializer with);
/* Token embedding plus learned positions. *table is the embedding table, which a tied head may
 * use. */
int parts_embed(struct graph *graph, int tokens, int *table);
/* Multi-head attention with biases and one key/value head per query head, where `mixing` is the
 * attention operation, and its output projection, whose weights start from `residual`. */
int parts_attention(struct graph *graph, const struct operation *mixing, int input,
                    struct initializer residual);
/* The MLP with biases: fc1, GELU, fc2. fc2 starts from `residual`. */
int parts_network(struct graph *graph, int input, struct initializer residual);
/* A whole pre-norm layer, as in GPT-2: x + attention(norm(x)), then x + network(norm(x)). */
int parts_prenorm(struct graph *graph, const struct operation *mixing, int input,
                  struct initializer residual);
/* Open the block of layer `index`, "layers.3". */
void parts_layer(struct graph *graph, int64_t index, int type);

/* Set the sizes that all families have (s, h, f, v) and the epsilon and rotation of nodes to come.
 * `ffn` is the width of the MLP if the configuration gives none. */
void parts_sizes(struct graph *graph, const struct model_config *config, int64_t ffn);
/* Set the sizes n and d, which parts_attention() needs. */
void parts_heads(struct graph *graph, const struct model_config *config);
/* -EINVAL when the number of heads does not divide the hidden width. */
int parts_check_heads(const struct model_config *config, struct error *err);

#endif
