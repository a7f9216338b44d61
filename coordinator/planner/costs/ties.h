/* ties.h - strategies of a block that shares weights with another, as the other one sees them.
 *
 * What the other end pays for the shared weights depends on where they lie, how their gradients
 * leave, and, of the owner, on what is sharded. The owner's other weights count too: what both take
 * together is reduced in common, and what the owner takes alone is then subtracted; strategies that
 * agree in all this are one tie, and which of them was asked for first makes no difference. */
#ifndef COORDINATOR_PLANNER_COSTS_TIES_H
#define COORDINATOR_PLANNER_COSTS_TIES_H

#include "common/graph/graph.h"
#include "common/placement/role.h"

struct ties {
    struct tie_ends *items;
    size_t count, capacity;
};

void ties_finish(struct ties *ties);
/* Block 0, the owner, or the last one, on a mesh of so many axes. The number of the tie, from 1. */
int ties_find(struct ties *ties, const struct graph *graph, int block,
              const struct role *const *vector, int axes, int zero);

#endif
