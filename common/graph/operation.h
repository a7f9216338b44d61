/* operation.h - the description of one kind of operation: its operands, cost and splits.
 *
 * To add an operation, write its file in operations/ and add its row in operation.c. Descriptions
 * are constant; the arithmetic itself is in the devices' kernels.
 *
 * The operands are the inputs, then the weights, then the single output, numbered in this order.
 * An operation may run in several phases. A phase can leave named statistics behind, which are
 * reduced over the ranks that hold the other pieces of one dim before the next phase begins: a
 * softmax over a split vocabulary, for example, needs the maximum over all ranks first, and a
 * maximum cannot be folded into a sum. Statistics are numbered on from the output.
 *
 * Every operation has a backward direction: it computes the gradients of its inputs and weights
 * from the gradient of its output. */
#ifndef COMMON_GRAPH_OPERATION_H
#define COMMON_GRAPH_OPERATION_H

#include "common/graph/shape.h"

#define OPERANDS_MAX 5   /* inputs, weights and the output */
#define STATISTICS_MAX 3 /* per direction */
#define PHASES_MAX 3     /* per direction */
#define VIEWS_MAX (OPERANDS_MAX + STATISTICS_MAX)

enum direction { FORWARD, BACKWARD, DIRECTIONS };
enum reduction { REDUCTION_SUM, REDUCTION_MAX };

/* A small tensor that a phase leaves behind and that is reduced before the next phase begins. */
struct statistic {
    const char *name;
    const char *dims;
    int phase; /* the phase after which it is reduced, from 0 */
    enum reduction reduction;
};

/* How one role splits the operands: "b..>b", one sign per operand (see placement/role.h). */
struct cell {
    const char *role;
    const char *signs;
};

struct operation {
    const char *name;
    const char *kernel; /* the name by which devices look up the kernel; NULL: `name` */
    bool causal;        /* attention: a position sees itself and what comes before, not all */
    const char *like;   /* in a profile without this operation, use that one's times; NULL: none */
    int input_count, weight_count;
    const char *dims[OPERANDS_MAX]; /* of the inputs, the weights and the output, see shape.h */

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
    /* Takes little arithmetic for a large output: selective recomputation runs it again in
     * backward rather than keep the output. */
    bool cheap;
    /* No device has a kernel for it yet: a model with it can be planned but not run. */
    bool planned;
    /* The output is the loss: summed over the micro-batches of a step, with gradient 1. */
    bool is_loss;

    char exchange; /* statistics are reduced over the axes that split this dim of operand 0 */
    int phases[DIRECTIONS];
    struct statistic statistics[DIRECTIONS][STATISTICS_MAX];
    int statistic_count[DIRECTIONS];

    /* Floating-point operations of forward, given the pieces of all operands that a rank holds. */
    double (*flops)(const struct operation *operation, const struct box *operands);
    double backward_flops; /* those of backward, as a multiple of forward's */
    /* Bytes of scratch memory that a kernel of any device may use during one call; NULL: none. */
    uint64_t (*workspace)(const struct box *operands, enum direction direction);

    /* How roles split this operation, for roles whose own file in placement/roles/ does not list
     * it; a row there takes precedence. */
    struct cell cells[8];
};

/* The number of operands: inputs, weights and the output. */
int operation_operands(const struct operation *operation);

/* The number of the output among the operands. */
static inline int operation_output(const struct operation *operation)
{
    return operation->input_count + operation->weight_count;
}

/* Does this operand have a gradient? */
static inline bool operation_differentiates(const struct operation *operation, int operand)
{
    return !(operation->constant >> operand & 1);
}

/* For `flops` of a matrix product: 2 x the product of the sizes of all dims that occur in the first
 * input or the first weight. */
double operation_matmul_flops(const struct operation *operation, const struct box *operands);
/* For `flops` of an elementwise operation: one per element of the largest operand. */
double operation_pass_flops(const struct operation *operation, const struct box *operands);

/* All operations; ends with NULL. */
extern const struct operation *const operations[];
const struct operation *operation_find(const char *name); /* NULL when unknown */

#endif
