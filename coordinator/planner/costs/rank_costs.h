/* rank_costs.h - the cost of a part to a stage: its program is lowered for one rank after the
 * other, and of every number the largest counts. Only ranks that represent all others are lowered;
 * but all ranks are if the site tells its ranks apart and they, or their hosts, differ. */
#ifndef COORDINATOR_PLANNER_COSTS_RANK_COSTS_H
#define COORDINATOR_PLANNER_COSTS_RANK_COSTS_H

#include "coordinator/planner/costs/block_costs.h"

/* For which ranks of a stage a part is lowered: all representatives, or the first of them. */
enum ranks { RANKS_ALL, RANKS_FIRST };

/* A part of a scratch plan of one stage or two; it is on stage `side`. */
struct staged_part {
    const struct plan *plan; /* for the short model */
    struct part part;
    const struct site *sites[2]; /* of the plan's stages; the second is NULL if there is only one */
    int side;
};

/* Which ranks have to be lowered. place: where the part begins in the short model. samples: per
 * micro-batch. across: the part involves two stages. */
enum ranks rank_costs_of(const struct costs *costs, const struct site *site, enum part_kind kind,
                         int place, int64_t samples, bool across);
/* The cost on the ranks that the key names. Cached under the key; the first rank's cost also on its
 * own. Returns as lower_part(). */
int rank_costs_sum(struct costs *costs, const struct cost_key *key, const struct staged_part *part,
                   struct part_cost *out, struct error *err);

#endif
