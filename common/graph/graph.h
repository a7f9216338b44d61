/* graph.h - a model as data: tensors, the operations between them, and a chain of blocks.
 *
 * A block is one repeated layer (or what stands before the first and after the last). Blocks
 * form a chain: a block reads the last tensor of the block before it, and no other block's
 * activations. Weights may have two users (tied); the first one owns them. */
#ifndef COMMON_GRAPH_GRAPH_H
#define COMMON_GRAPH_GRAPH_H

#include "common/graph/operation.h"
#include "common/graph/rotation.h"

enum tensor_kind {
    TENSOR_DATA,       /* comes from the data source: tokens, targets */
    TENSOR_WEIGHT,     /* trained */
    TENSOR_ACTIVATION, /* made by an operation */
    TENSOR_LOSS,       /* a scalar, summed over the step */
};

struct initializer {
    float mean, deviation; /* normal; deviation 0: constant */
};

struct tensor {
    char *name; /* as a checkpoint names it: "layers.3.fc1.weight" */
    const char *dims;
    enum tensor_kind kind;
    struct initializer initializer; /* of a weight */
    bool decays;                    /* weight decay applies */
    bool targets;                   /* data: what is to be predicted, not what is read */
    int producer;                   /* node, or -1 */
    int block;                      /* of the producer, or of the first user */
};

struct node {
    const struct operation *operation;
    int block;
    int operands[OPERANDS_MAX]; /* tensors: inputs, weights, output */
    float epsilon;              /* of a norm */
    struct rotation rotation;   /* of rotary positions */
};

struct block {
    char *name; /* "embed", "layers.3", "head" */
    int type;   /* equal blocks have equal types */
    int node_first, node_count;
    int output; /* the tensor that the next block reads */
};

struct graph {
    struct sizes sizes; /* b is the samples of a micro-batch: 0 here, the plan knows it */
    /* Of activations, their gradients, and weights while they are computed with: 4 is f32, 2 is
     * bf16. Masters, moments and sums of gradients are f32 in any case. */
    int element_bytes;
    /* Of nodes that are added from now on; 1e-5, and a base of 10000 unless set. */
    float epsilon;
    struct rotation rotation;
    struct tensor *tensors;
    struct node *nodes;
    struct block *blocks;
    size_t tensor_count, node_count, block_count;
    size_t tensor_capacity, node_capacity, block_capacity;
    int type_count;
};

struct graph *graph_create(void);
void graph_destroy(struct graph *graph);

/* Building: a block is open from its begin until the next begin. Names are copied. */
void graph_block(struct graph *graph, const char *name, int type);
int graph_data(struct graph *graph, const char *name, const char *dims, bool targets);
/* Takes the name "BLOCK.name". */
int graph_weight(struct graph *graph, const char *name, const char *dims, struct initializer with,
                 bool decays);
/* Append an operation to the open block; operands are its inputs and weights. The returned
 * output becomes the block's. */
int graph_node(struct graph *graph, const struct operation *operation, const char *output,
               const int *operands);

/* Elements of the tensor when a micro-batch has `batch` samples. */
int64_t graph_tensor_count(const struct graph *graph, int tensor, int64_t batch);
int64_t graph_parameter_count(const struct graph *graph);
/* sizes with the samples of a micro-batch filled in. */
struct sizes graph_sizes(const struct graph *graph, int64_t batch);
uint64_t graph_hash(const struct graph *graph, uint64_t hash);

#endif
