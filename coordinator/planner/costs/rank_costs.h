/* rank_costs.h - what a part takes a stage: its program, lowered for one rank after the other, and
 * of every number the largest. Only those ranks are lowered that stand for all others; all of them
 * where the site tells its ranks apart, and they or their hosts are unlike. */
#ifndef COORDINATOR_PLANNER_COSTS_RANK_COSTS_H
#define COORDINATOR_PLANNER_COSTS_RANK_COSTS_H

#include "coordinator/planner/costs/block_costs.h"

/* Whose programs are lowered of a stage: those that stand for it, or the first of them. */
enum ranks { RANKS_ALL, RANKS_FIRST };

/* A part of a scratch plan of one stage or two, on the stage `side` of it. */
struct staged_part {
    const struct plan *plan; /* of the short model */
    struct part part;
    const struct site *sites[2]; /* of the plan's stages; the second is NULL where there is one */
    int side;
};

/* place: of the short model, what the part begins at. samples: of a micro-batch. across: the part
 * lies on two stages. */
enum ranks rank_costs_of(const struct costs *costs, const struct site *site, enum part_kind kind,
                         int place, int64_t samples, bool across);
/* On the ranks that the key names; remembered by the key, and that of the first one by itself.
 * Returns as lower_part() does. */
int rank_costs_sum(struct costs *costs, const struct cost_key *key, const struct staged_part *part,
                   struct part_cost *out, struct error *err);

#endif
