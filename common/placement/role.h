/* role.h - roles: the ways in which a mesh axis can parallelise a model.
 *
 * A role is an ordered list of dim letters; a new one is a row in role.c. How it splits an
 * operation follows from the operation's dims. For one axis with a role, and one node:
 *
 *   1. The role's letter here is the first of its list that any operand has. (Some roles look at
 *      the first input before all others; some have another list where positions mix.) Without a
 *      letter everything is replicated, and the ranks along the axis do the same.
 *   2. An input or weight that has the letter is split along it; any other is replicated.
 *   3. An output that has it is split. One without it is replicated where statistics are exchanged
 *      along the letter inside the operation, and else a partial sum.
 *   4. The gradient of an input or weight leaves split where that is split; elsewhere as a partial
 *      sum, unless it was added once to an output that is no longer split (a bias). The gradient of
 *      an output arrives as that left, partial sums completed.
 *
 * That holds if every element of an output depends on the letter only through its own piece, or
 * linearly on what is contracted, or through what is exchanged. An operation for which it does not
 * lists its cells (graph/operation.h): one sign per operand, a letter, '.' for replicated, '+' for
 * a partial sum; "b..>b" splits the first input and the output along b and replicates two weights.
 *
 * Axes compose: a plan gives every axis a role, and the placement of an operand collects, per dim,
 * the axes that split it. */
#ifndef COMMON_PLACEMENT_ROLE_H
#define COMMON_PLACEMENT_ROLE_H

#include "common/graph/graph.h"
#include "common/placement/placement.h"

struct role {
    const char *name;
    const char *short_name; /* in one-line descriptions of a plan: "dp" */
    const char *letters;    /* what its axes split, best first */
    const char *mixing; /* instead, where positions mix (attention); NULL: `letters` there, too */
    bool input_first;   /* prefers what the first input has */
    /* Ranks roles whose axes split the same dim, major (low) to minor: `order_seq` on dim s,
     * `order` on all others. */
    int order, order_seq;
    /* Of several axes with this role, those with slower links are major. Mirrored roles reverse
     * this on all dims but s: an all-to-all can only move the minor-most axis of a dim to become
     * the minor-most axis of another, so moving several of them reverses their order. */
    bool mirrored;
};

/* All roles, in the order in which searches try them; ends with NULL. */
extern const struct role *const roles[];
/* NULL when unknown. */
const struct role *role_find(const char *name);
/* Write the names of all roles as "batch, tensor, ..." for a message, truncated to `size`; returns
 * `out`. */
char *role_list(char *out, size_t size);

/* The placements of an operation's operands for a given role on each axis. */
struct signature {
    struct placement operand[OPERANDS_MAX];
    /* Of an input or weight: the gradient as backward produces it. Of the output: the gradient as
     * backward expects it. */
    struct placement gradient[OPERANDS_MAX];
};

/* The signature of a node's operation along its dims; `vector` holds the role of each axis. */
struct signature signature_make(const struct node *node, const struct role *const *vector,
                                int axes);
/* The piece of a statistic that belongs to these pieces of the operands. */
struct box signature_statistic_box(const struct node *node, const struct statistic *statistic,
                                   const struct box *operands);
/* The axes over which the operation's statistics are reduced. */
unsigned signature_exchange_axes(const struct node *node, const struct signature *signature);

#endif
