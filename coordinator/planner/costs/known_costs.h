/* known_costs.h - costs of parts, remembered by all that they depend on. */
#ifndef COORDINATOR_PLANNER_COSTS_KNOWN_COSTS_H
#define COORDINATOR_PLANNER_COSTS_KNOWN_COSTS_H

#include "common/placement/mesh.h"
#include "coordinator/planner/costs/part_cost.h"

/* What a cost depends on. */
struct cost_key {
    int64_t samples;
    int32_t kind, index, side, site, ranks, pair, tie;
    int32_t unused; /* keys are hashed and compared by their bytes: none may be padding */
    uint8_t roles[2][AXES_MAX], zero[2], recompute[2]; /* roles: one more than their row */
};

struct known_costs {
    struct cost_entry *entries; /* in the order in which they were remembered */
    size_t count, capacity;
    uint32_t *slots;          /* by the hash of a key: the number of its entry from 1, or 0 */
    size_t slot_count;        /* a power of two */
    struct part_bytes **kept; /* per rank, that costs lend */
    size_t kept_count, kept_capacity;
};

void known_costs_init(struct known_costs *known);
void known_costs_finish(struct known_costs *known);
/* false: it is not known. */
bool known_costs_recall(const struct known_costs *known, const struct cost_key *key,
                        struct part_cost *out);
/* What was not known before. */
void known_costs_remember(struct known_costs *known, const struct cost_key *key,
                          const struct part_cost *cost);
/* A copy of the bytes of so many ranks; lent until all is finished. */
const struct part_bytes *known_costs_keep(struct known_costs *known, const struct part_bytes *ranks,
                                          int count);

#endif
