/* layers.h - what model families are built from: operations together with their weights, and the
 * usual sizes.
 *
 * Functions append to the graph's open block. `input` and results are tensor numbers. A layer
 * called `name` has the weights "BLOCK.name.weight" and, if any, "BLOCK.name.bias", and its output
 * is "BLOCK.name". */
#ifndef COMMON_MODELS_LAYERS_H
#define COMMON_MODELS_LAYERS_H

#include "common/models/model.h"

/* The normal distribution of most initial weights, with deviation 0.02. */
extern const struct initializer layer_narrow;
/* That of projections into the residual stream, of which there are two per layer: deviation
 * 0.02 / sqrt(2 layers), as in GPT-2. */
struct initializer layer_residual(int64_t layers);

/* A matrix product y = x w + b: its name in tables and profiles, and the dims of each. b NULL:
 * without a bias. */
struct layer_product {
    const char *name, *x, *w, *b, *y;
};
/* Layer normalisation, with weight and bias. */
int layer_norm(struct graph *graph, const char *name, int input);
/* A matrix product with weights of its own. */
int layer_linear(struct graph *graph, const struct layer_product *product, const char *name,
                 int input, struct initializer with);
/* The logits by this weight, and the loss against targets, one for every position. */
void layer_head(struct graph *graph, int input, int weight, int targets);
/* Token embedding plus learned positions. *table is the embedding table, which a tied head may
 * use. */
int layer_embed(struct graph *graph, int tokens, int *table);
/* Multi-head attention with biases and one key/value head per query head, where `mixing` is the
 * attention operation, and its output projection, whose weights start from `residual`. */
int layer_attention(struct graph *graph, const struct operation *mixing, int input,
                    struct initializer residual);
/* The MLP with biases: fc1, GELU, fc2. fc2 starts from `residual`. */
int layer_mlp(struct graph *graph, int input, struct initializer residual);
/* A whole pre-norm layer, as in GPT-2: x + attention(norm(x)), then x + mlp(norm(x)). */
int layer_prenorm(struct graph *graph, const struct operation *mixing, int input,
                  struct initializer residual);
/* Open the block of layer `index`, "layers.3". */
void layer_begin(struct graph *graph, int64_t index, int type);

/* Set the sizes that all families have (s, h, f, v) and the epsilon and rotation of nodes to come.
 * `ffn` is the width of the MLP if the configuration gives none. */
void layer_sizes(struct graph *graph, const struct job_model *config, int64_t ffn);
/* Set the sizes n and d, which layer_attention() needs. */
void layer_heads(struct graph *graph, const struct job_model *config);
/* -EINVAL when the number of heads does not divide the hidden width. */
int layer_check_heads(const struct job_model *config, struct error *err);

#endif
