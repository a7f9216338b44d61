/* role.h - roles: the ways in which a mesh axis can parallelise a model, as tables.
 *
 * To add a role, write its file in roles/ and add its row in roles.c. For every operation a role
 * has a cell, a string with one sign per operand: the inputs and weights, '>', the output. A letter
 * means that the axis splits the operand along this dim, '.' that it replicates it, and '+' that it
 * is a partial sum. "b..>b", for example, splits the first input and the output along the batch and
 * replicates two weights.
 *
 * Axes compose: a plan gives every axis a role, each axis contributes its own cell, and the
 * placement of an operand collects, per dim, the axes whose cells name it.
 *
 * The placements of gradients follow from the cells. Where a tensor is split, so is its gradient.
 * On any other axis the gradient of an input or weight leaves as a partial sum if the arriving
 * gradient of the output is split there, and replicated if not. */
#ifndef COMMON_PLACEMENT_ROLE_H
#define COMMON_PLACEMENT_ROLE_H

#include "common/base/error.h"
#include "common/graph/graph.h"
#include "common/placement/placement.h"

struct role_cell {
    const char *operation;
    const char *signs;
};

struct role {
    const char *name;
    const char *short_name; /* in one-line descriptions of a plan: "dp" */
    /* Ranks roles whose axes split the same dim, major (low) to minor: `order_seq` on dim s,
     * `order` on all others. */
    int order, order_seq;
    /* Of several axes with this role, those with slower links are major. Mirrored roles reverse
     * this on all dims but s: an all-to-all can only move the minor-most axis of a dim to become
     * the minor-most axis of another, so moving several of them reverses their order. */
    bool mirrored;
    const struct role_cell *cells; /* ends with {NULL} */
};

/* All roles; ends with NULL. */
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

/* Compute the signature; `vector` holds the role of each axis. -EINVAL when a role has no cell for
 * the operation. */
int signature_make(const struct operation *operation, const struct role *const *vector, int axes,
                   struct signature *out, struct error *err);
/* The piece of a statistic with these dims that belongs to these pieces of the operands. */
struct box signature_statistic_box(const struct operation *operation, const char *dims,
                                   const struct box *operands);
/* The axes over which the operation's statistics are reduced. */
unsigned signature_exchange_axes(const struct operation *operation,
                                 const struct signature *signature);

#endif
