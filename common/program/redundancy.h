/* redundancy.h - which slices of the state are lost at once, because all ranks that have them are.
 *
 * What is lost at once is a unit: the ranks of a node or, in a plan on a single node, each rank.
 * Planner and workers decide by this what is copied to whom. */
#ifndef COMMON_PROGRAM_REDUNDANCY_H
#define COMMON_PROGRAM_REDUNDANCY_H

#include "common/plan/plan.h"

#define REDUNDANCY_MESSAGE_BYTES (1 << 20) /* a copy is sent in messages of so many */

struct storage;

struct redundancy {
    const struct plan *plan;
    struct storage *storage; /* [tensor]: where its master and moments are (lower.h) */
    int *units;              /* [rank]: the first rank of its unit */
    bool single;             /* all ranks are on one node */
    bool **alone; /* [stage << AXES_MAX | axes that split a tensor][rank in the stage]; or NULL */
};

/* Find it for a plan whose ranks are on these nodes. Lends the plan. Errors as lower(); to be
 * finished in any case. */
int redundancy_find(const struct graph *graph, const struct plan *plan, const char *const *nodes,
                    struct redundancy *out, struct error *err);
void redundancy_finish(struct redundancy *redundancy);

/* Whether the rank has a slice of the tensor, and nobody outside of its unit has. */
bool redundancy_only_copy(const struct redundancy *redundancy, int rank, int tensor);
/* Whether anybody can keep copies of what would be lost: there are other ranks, and not all are on
 * one node whose worker has their states anyhow. outlived: it has that of a killed executor. */
bool redundancy_matters(const struct redundancy *redundancy, bool outlived);
/* The rank that what this one alone has is copied to: the next one of another unit. There must be
 * one. */
int redundancy_neighbour(const struct redundancy *redundancy, int rank);

#endif
