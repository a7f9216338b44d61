/* operation.h - the description of one kind of operation: its operands, along which dims it works,
 * what it costs, and all else that lowering, prices and kernels ask for.
 *
 * Descriptions are constant, and stand in operations.c, where a new one is a row; the arithmetic
 * itself is in the devices' kernels. How roles split an operation is nowhere written down: it
 * follows from the dims (placement/role.h).
 *
 * The operands are the inputs, then the weights, then the single output, numbered in this order.
 * Their dims are letters (graph/box.h). A letter is the operation's own: every node binds it to
 * the sizes of the tensors that it reads. Dims with the same letter are cut alike.
 *
 * An operation may run in several phases. A phase can leave named statistics behind, which are
 * reduced over the ranks that hold the other pieces of a dim before the next phase begins: a
 * softmax over a split vocabulary, for example, needs the maximum over all ranks first, and a
 * maximum cannot be folded into a sum. Statistics are numbered on from the output.
 *
 * Every operation has a backward direction: it computes the gradients of its inputs and weights
 * from the gradient of its output. */
#ifndef COMMON_GRAPH_OPERATION_H
#define COMMON_GRAPH_OPERATION_H

#include "common/graph/box.h"

#define OPERANDS_MAX 5   /* inputs, weights and the output */
#define STATISTICS_MAX 3 /* per direction */
#define PHASES_MAX 3     /* per direction */
#define VIEWS_MAX (OPERANDS_MAX + STATISTICS_MAX)

enum direction { FORWARD, BACKWARD, DIRECTIONS };
enum reduction { REDUCTION_SUM, REDUCTION_MAX };

struct node; /* graph/graph.h */

/* A small tensor that a phase leaves behind and that is reduced before the next phase begins. */
struct statistic {
    const char *name;
    const char *without; /* its dims are those of operand 0 without these, */
    char last;           /* and with this one behind all others; 0: in their order */
    int phase;           /* the phase after which it is reduced, from 0 */
    enum reduction reduction;
};

/* How one role splits the operands: "b..>b", one sign for each (placement/role.h). */
struct cell {
    const char *role;
    const char *signs;
};

struct operation {
    const char *name;
    const char *kernel; /* the name by which devices look up the kernel; NULL: `name` */
    int input_count, weight_count;
    /* Of the inputs, the weights and the output. All NULL: every node says its own. */
    const char *dims[OPERANDS_MAX];

    /* Bit i: backward reads operand (or statistic) i, so it has to be kept until then. Weights
     * may always be read. */
    unsigned saved;
    /* Bit i: operand i has no gradient (token numbers, targets). */
    unsigned constant;
    /* Bit i: the gradient of input i equals the gradient of the output; nothing is computed. */
    unsigned passes;
    /* Bit i: where the output is a sum of which each rank holds a part, only one rank may add
     * operand i (a bias). */
    unsigned once;
    /* Attention: the letter of the keys' positions, which differs from that of the queries' (every
     * query needs all keys that it sees); 0: positions do not mix. */
    char keys;
    bool causal; /* a query sees the keys at its own and earlier positions only */
    /* Takes little arithmetic for a large output: selective recomputation runs it again in
     * backward rather than keep the output. */
    bool cheap;
    /* No device has a kernel for it yet: a model with it can be planned but not run. */
    bool planned;
    /* The output is the loss: summed over the micro-batches of a step, with gradient 1. */
    bool is_loss;

    /* Letters of operand 0: statistics are reduced over the axes that split these. NULL: none. */
    const char *exchange;
    int phases[DIRECTIONS];
    struct statistic statistics[DIRECTIONS][STATISTICS_MAX];
    int statistic_count[DIRECTIONS];

    /* Floating-point operations of forward, given the pieces of all operands that a rank holds. */
    double (*flops)(const struct node *node, const struct box *operands);
    /* Those of backward, as a multiple of forward's; and how much of it is the gradient of the
     * input, which a node that reads data does not compute. */
    double backward_flops, input_flops;
    /* Bytes of scratch memory that a kernel of any device may use during one call; NULL: none. */
    uint64_t (*workspace)(const struct box *operands, enum direction direction);

    /* Splits that do not follow the rule; ends with {NULL}. NULL: all do. */
    const struct cell *cells;
};

/* The number of operands: inputs, weights and the output. */
int operation_operands(const struct operation *operation);

/* The number of the output among the operands. */
static inline int operation_output(const struct operation *operation)
{
    return operation->input_count + operation->weight_count;
}

/* For `flops` of a matrix product: 2 x the product of the sizes of all dims that occur in the first
 * input or the first weight. */
double operation_matmul_flops(const struct node *node, const struct box *operands);
/* For `flops` of an elementwise operation: one per element of the largest operand. */
double operation_pass_flops(const struct node *node, const struct box *operands);

extern const struct operation operation_add, operation_attention, operation_causal_attention,
    operation_embed, operation_gelu, operation_linear, operation_loss, operation_matmul,
    operation_norm, operation_pool, operation_position, operation_rmsnorm, operation_rotary,
    operation_swiglu;
/* All of them; ends with NULL. */
extern const struct operation *const operations[];

#endif
