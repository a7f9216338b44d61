/* known_costs.h - a cache of the costs of parts, keyed by everything they depend on. */
#ifndef COORDINATOR_PLANNER_COSTS_KNOWN_COSTS_H
#define COORDINATOR_PLANNER_COSTS_KNOWN_COSTS_H

#include "common/placement/mesh.h"
#include "coordinator/planner/costs/part_cost.h"

/* Everything a cost depends on. */
struct cost_key {
    int64_t samples;
    int32_t kind, index, side, site, ranks, pair, tie;
    int32_t unused; /* keys are hashed and compared as bytes, so there must be no padding */
    /* roles: row in the table of roles plus one */
    uint8_t roles[2][AXES_MAX], zero[2], recompute[2];
};

struct known_costs {
    struct cost_entry *entries; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *slots;          /* hash table: number of an entry counted from 1, or 0 */
    size_t slot_count;        /* a power of two */
    struct part_bytes **kept; /* per-rank bytes that costs point to */
    size_t kept_count, kept_capacity;
};

void known_costs_init(struct known_costs *known);
void known_costs_finish(struct known_costs *known);
/* Copy the cost to *out and return true, or return false if it is not known. */
bool known_costs_recall(const struct known_costs *known, const struct cost_key *key,
                        struct part_cost *out);
/* Add a cost that is not known yet. */
void known_costs_remember(struct known_costs *known, const struct cost_key *key,
                          const struct part_cost *cost);
/* Copy the bytes of `count` ranks; lent until known_costs_finish(). */
const struct part_bytes *known_costs_keep(struct known_costs *known, const struct part_bytes *ranks,
                                          int count);

#endif
