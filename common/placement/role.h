/* role.h - what a mesh axis is used for, as a table: one file per role in roles/, one row in
 * roles.c.
 *
 * A role has, for every operation, a cell with one sign per operand: "b..>b" reads, inputs and
 * weights, then the output: split along that dim; '.' whole; '+' an unfinished sum. Axes
 * compose: a vector of roles takes one cell per axis, and a tensor's placement collects, per
 * dim, the axes whose cell names it.
 *
 * Gradients follow: a gradient leaves split where its tensor is split; on every other axis it
 * leaves partial exactly if the arriving gradient is split there. */
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
    const char *short_name; /* in one line about a plan: "dp" */
    /* Where its axes stand among those on one dim, major to minor; on seq, and elsewhere. */
    int order, order_seq;
    /* Of several axes with this role the slow ones are major; mirrored: minor, but on seq. An
     * all-to-all takes the minor-most axis away and makes it minor-most there. */
    bool mirrored;
    const struct role_cell *cells; /* ends with {NULL} */
};

/* The family; ends with NULL. */
extern const struct role *const roles[];
const struct role *role_find(const char *name);
/* "batch, tensor, ...": the names there are, for a sentence; at most size characters. */
char *role_list(char *out, size_t size);

/* Where the operands of an operation lie under a vector of roles, one per axis. */
struct signature {
    struct placement operand[OPERANDS_MAX];
    /* Of inputs and weights: as the gradient leaves; of the output: as it arrives. */
    struct placement gradient[OPERANDS_MAX];
};

/* -EINVAL: a role has no cell for the operation. */
int signature_make(const struct operation *operation, const struct role *const *vector, int axes,
                   struct signature *out, struct error *err);
/* The piece of a statistic that goes with these pieces of the operands. */
struct box signature_statistic_box(const struct operation *operation, const char *dims,
                                   const struct box *operands);
/* Axes over which the statistics of the operation are reduced. */
unsigned signature_exchange_axes(const struct operation *operation,
                                 const struct signature *signature);

#endif
