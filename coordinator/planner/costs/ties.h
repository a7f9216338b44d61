/* ties.h - classes of strategies of a block that shares weights, as the other block sees them.
 *
 * What the other end pays for the shared weights depends on where they lie, how their gradients
 * leave and, for the owner, on what is sharded. The owner's other weights matter too: what both
 * blocks take together is reduced in common, and what the owner takes alone is then subtracted.
 * Strategies that agree in all this form one tie, and it makes no difference which of them came
 * first. */
#ifndef COORDINATOR_PLANNER_COSTS_TIES_H
#define COORDINATOR_PLANNER_COSTS_TIES_H

#include "common/graph/graph.h"
#include "common/placement/role.h"

struct ties {
    struct tie_ends *items;
    size_t count, capacity;
};

void ties_finish(struct ties *ties);
/* The number, from 1, of the tie of a strategy for block 0, the owner, or for the last block, on a
 * mesh with this many axes. */
int ties_find(struct ties *ties, const struct graph *graph, int block,
              const struct role *const *vector, int axes, int zero);

#endif
