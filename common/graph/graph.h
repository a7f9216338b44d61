/* graph.h - a model as data: tensors, the operations (nodes) between them, and a chain of blocks.
 *
 * Every model family builds one of these; planning, pricing and lowering to programs work on it
 * alone. Tensors, nodes and blocks are numbered from 0 in the order in which they are added, and
 * nodes stand in execution order.
 *
 * A block is one layer, or what stands before the first layer (the embedding) or after the last
 * (the head). Blocks form a chain: a block reads the output of the block before it and no other
 * block's activations. A weight may be used by two blocks (tied weights); it belongs to the block
 * that uses it first.
 *
 * Sizes belong to tensors. The letters of dims are those of a node: it binds each to the size that
 * the tensors it reads have there, so that two nodes may use one letter for two sizes. */
#ifndef COMMON_GRAPH_GRAPH_H
#define COMMON_GRAPH_GRAPH_H

#include "common/graph/operation.h"
#include "common/graph/rotation.h"

enum tensor_kind {
    TENSOR_DATA,       /* read from the data source: tokens, targets */
    TENSOR_WEIGHT,     /* a trained parameter */
    TENSOR_ACTIVATION, /* computed by a node */
    TENSOR_LOSS,       /* a scalar, summed over all micro-batches of a step */
};

struct initializer {
    float mean, deviation; /* a normal distribution; with deviation 0 the constant `mean` */
};

struct tensor {
    char *name;       /* as in a checkpoint: "layers.3.fc1.weight"; owned by the graph */
    const char *dims; /* one letter per dim, see box.h; not copied */
    int64_t
        sizes[DIMS_MAX]; /* of the dims; of b, the samples of a micro-batch, 0: a plan decides */
    enum tensor_kind kind;
    struct initializer initializer; /* weights only */
    bool decays;                    /* weights: weight decay applies */
    bool targets;                   /* data: what is to be predicted, not the model's input */
    int producer;                   /* the node whose output it is; -1 for data and weights */
    int block;                      /* of the producer, or of a weight's first user */
};

#define NODE_NAME_SIZE 24

struct node {
    /* As people know it, and profiles have rates for it: "qkv"; shorter than NODE_NAME_SIZE, not
     * copied. */
    const char *name;
    const struct operation *operation;
    const char *dims[OPERANDS_MAX]; /* of the operands, in the node's own letters; not copied */
    struct sizes sizes;             /* of these letters; b stays 0 */
    unsigned constant;              /* bit i: operand i has no gradient, as it is data */
    int block;
    int operands[OPERANDS_MAX]; /* tensor numbers: inputs, then weights, then the output */
    float epsilon;              /* used by norms only */
    struct rotation rotation;   /* used by rotary positions only */
};

struct block {
    char *name; /* "embed", "layers.3", "head" */
    int type;   /* blocks of the same type have the same nodes and shapes */
    int node_first, node_count;
    int output; /* the last node's output, which the next block reads; -1: no node yet */
};

struct graph {
    /* Given to all data and weights that are declared afterwards, by letter. Other letters may have
     * other sizes elsewhere: tensors and nodes are what is to be asked. */
    struct sizes sizes;
    /* Bytes per element of activations, their gradients, and the copies of weights used in
     * computation: 4 is f32, 2 is bf16. Master weights, optimizer moments and gradient sums are
     * always f32. */
    int element_bytes;
    /* Given to every node added afterwards. Defaults: epsilon 1e-5, base 10000, no scaling. */
    float epsilon;
    struct rotation rotation;
    struct tensor *tensors;
    struct node *nodes;
    struct block *blocks;
    size_t tensor_count, node_count, block_count;
    size_t tensor_capacity, node_capacity, block_capacity;
    int type_count; /* block types are 0 to type_count - 1 */
};

/* An empty graph; never NULL. */
struct graph *graph_create(void);
/* Accepts NULL. */
void graph_destroy(struct graph *graph);

/* Begin a block; it stays open until the next one begins. Here and below names are copied, `dims`
 * is kept as a pointer and has to outlive the graph. */
void graph_block(struct graph *graph, const char *name, int type);
/* Give what is declared afterwards the sizes that this tensor, perhaps of another graph, has. */
void graph_sizes_like(struct graph *graph, const struct tensor *tensor);
/* Declare a data tensor and return its number. */
int graph_data(struct graph *graph, const char *name, const char *dims, bool targets);
/* Add a weight named "BLOCK.name" to the open block and return its tensor number. */
int graph_weight(struct graph *graph, const char *name, const char *dims, struct initializer with,
                 bool decays);
/* Append a node to the open block. `operands` holds the tensor numbers of its inputs and weights;
 * the output tensor, named "BLOCK.output", is created here. Returns its number; it also becomes
 * the block's output. */
int graph_node(struct graph *graph, const struct operation *operation, const char *output,
               const int *operands);
/* The same along dims of its own: of the inputs, the weights and the output, for an operation that
 * leaves them open; and under a name of its own. Both are kept as pointers. A letter stands for one
 * size in all dims of a node. */
int graph_node_along(struct graph *graph, const char *name, const struct operation *operation,
                     const char *const *dims, const char *output, const int *operands);

/* The size of this dim; 0: the tensor has none. */
int64_t tensor_size(const struct tensor *tensor, char dim);
/* The whole tensor, with this many samples. */
struct box tensor_box(const struct tensor *tensor, int64_t samples);
/* Positions of a sample: the length of its sequence in what the model reads. */
int64_t graph_positions(const struct graph *graph);

/* Does this operand have a gradient? */
static inline bool node_differentiates(const struct node *node, int operand)
{
    return !(node->constant >> operand & 1);
}

/* The dims of a statistic: letters of operand 0, and a 0 behind them. */
void node_statistic_dims(const struct node *node, const struct statistic *statistic,
                         char out[DIMS_MAX + 1]);
/* Floating-point operations of a direction, given the pieces of all operands. */
double node_flops(const struct node *node, const struct box *operands, enum direction direction);

/* Extend a running hash (see base/hash.h) by everything that defines the model: sizes, element
 * type, tensors and nodes. */
uint64_t graph_hash(const struct graph *graph, uint64_t hash);

#endif
