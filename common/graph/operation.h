/* operation.h - what an operation is: one file in operations/ and one row in operation.c.
 *
 * An operation has operands: its inputs, then its weights, then its one output, numbered in
 * this order. It may compute in phases, with named statistics between them that are reduced
 * over the ranks that hold the other pieces of one dim (the maximum over a split vocabulary is
 * no sum: it has to be an instruction of its own). Statistics are numbered on from the output.
 *
 * Every operation has a backward: gradients of its inputs and weights from that of its output. */
#ifndef COMMON_GRAPH_OPERATION_H
#define COMMON_GRAPH_OPERATION_H

#include "common/graph/shape.h"

#define OPERANDS_MAX 5   /* inputs, weights and the output */
#define STATISTICS_MAX 3 /* of one direction */
#define PHASES_MAX 3
#define VIEWS_MAX (OPERANDS_MAX + STATISTICS_MAX)

enum direction { FORWARD, BACKWARD, DIRECTIONS };
enum reduction { REDUCTION_SUM, REDUCTION_MAX };

/* A small tensor that a phase leaves behind, reduced before the next phase begins. */
struct statistic {
    const char *name;
    const char *dims;
    int phase; /* after which it is reduced */
    enum reduction reduction;
};

/* What one role does to the operands: "b..>b" (see placement/role.h). */
struct cell {
    const char *role;
    const char *signs;
};

struct operation {
    const char *name;
    const char *kernel; /* kernels are found by this; NULL: by the name */
    const char *like;   /* priced as this one where it was not measured itself; NULL: as no other */
    int input_count, weight_count;
    const char *dims[OPERANDS_MAX]; /* of inputs, weights, output */

    /* Bit i: operand i (or statistic) is read again in backward. Weights always may be. */
    unsigned saved;
    /* Bit i: operand i has no gradient (token numbers). */
    unsigned constant;
    /* Bit i: the gradient of input i *is* the gradient of the output: nothing is computed. */
    unsigned passes;
    /* Bit i: operand i may be added only once to a sum that several ranks hold parts of. */
    unsigned once;
    /* Little arithmetic for a large output: selective recomputation runs it again in backward
     * rather than keep the output. */
    bool cheap;
    /* No device has a kernel for it yet: it can be planned with, and not be run. */
    bool planned;
    /* The loss is summed over the micro-batches of a step; its own gradient is 1. */
    bool is_loss;

    char exchange; /* statistics are reduced over the axes that split this dim of operand 0 */
    int phases[DIRECTIONS];
    struct statistic statistics[DIRECTIONS][STATISTICS_MAX];
    int statistic_count[DIRECTIONS];

    /* Floating-point operations of forward on these pieces of the operands, and how many
     * times as many backward does. */
    double (*flops)(const struct operation *operation, const struct box *operands);
    double backward_flops;
    /* Scratch that a kernel of any device may use during one call; NULL: none. Bytes. */
    uint64_t (*workspace)(const struct box *operands, enum direction direction);

    /* Cells of roles that do not know this operation (a role's own file comes first). */
    struct cell cells[8];
};

int operation_operands(const struct operation *operation); /* inputs + weights + 1 */

/* Inputs and weights come before it. */
static inline int operation_output(const struct operation *operation)
{
    return operation->input_count + operation->weight_count;
}

static inline bool operation_differentiates(const struct operation *operation, int operand)
{
    return !(operation->constant >> operand & 1);
}

/* 2 x the product of all dims of the first input and the first weight: a matrix product. */
double operation_matmul_flops(const struct operation *operation, const struct box *operands);
/* One pass over the largest operand. */
double operation_pass_flops(const struct operation *operation, const struct box *operands);

/* The family; ends with NULL. */
extern const struct operation *const operations[];
const struct operation *operation_find(const char *name); /* NULL when unknown */

#endif
