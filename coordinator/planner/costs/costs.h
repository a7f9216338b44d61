/* costs.h - the cost of a block, a joint or a crossing: the summed prices of its instructions and
 * its bytes in the arena, from the same lowering as the programs that run.
 *
 * A part is lowered once per strategy, micro-batch size and kind of site, on the ranks that
 * represent its stage; of every number the largest among these ranks counts. Times are in
 * seconds. */
#ifndef COORDINATOR_PLANNER_COSTS_COSTS_H
#define COORDINATOR_PLANNER_COSTS_COSTS_H

#include "common/placement/role.h"
#include "coordinator/planner/costs/part_cost.h"
#include "coordinator/planner/costs/short_graph.h"
#include "coordinator/planner/costs/site.h"

/* What a plan chooses for a block. */
struct strategy {
    const struct role *roles[AXES_MAX]; /* per axis of the stage's mesh */
    int zero;
    enum recompute recompute;
};

/* The costs that are known, by everything that they depend on. */
struct known_costs {
    struct cost_entry *entries; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *slots;          /* hash table: number of an entry counted from 1, or 0 */
    size_t slot_count;        /* a power of two */
    struct part_bytes **kept; /* per-rank bytes that costs point to */
    size_t kept_count, kept_capacity;
};

/* Classes of strategies of a block that shares weights, as the other block sees them. */
struct ties {
    struct tie_ends *items;
    size_t count, capacity;
};

/* The cost model of one request. Not thread-safe: results are cached, and scratch plans are
 * reused. */
struct costs {
    const struct planner_request *request;
    struct short_graph model;
    struct sites sites;
    struct lower_cache *ways;
    struct ties ties;
    uint8_t *like; /* [block of the short model * RECOMPUTES + recomputation]: recompute_like() */
    struct plan *one, *two; /* scratch plans of the short model, on one stage and on two */
    struct known_costs known;
    size_t lowered; /* programs lowered so far */
    bool narrow;    /* only the roles that are tried on many devices are offered (space.c) */
    bool one_rank;  /* the first rank's cost stands for all ranks of a site of equal devices */
    int only_rank;  /* take costs of this rank of a stage only; -1: of all */
};

/* -ENOTSUP: the model's parts depend on each other in ways that are not modelled here; see
 * short_graph_init(). */
int costs_init(struct costs *costs, const struct planner_request *request, struct error *err);
void costs_finish(struct costs *costs);

/* Whether lowering accepts the strategy for this block on the site; if not, err says why. samples:
 * per micro-batch. */
bool costs_accepts(struct costs *costs, const struct site *site, int block,
                   const struct strategy *strategy, int64_t samples, struct error *err);
/* The cost of a block of the model. tie: if the first and the last block share weights, the
 * strategy and the site of the other one; otherwise NULL. On a common site the last block's cost is
 * what it adds to the first one's. Returns 0 or a negative errno of lowering. */
struct tie {
    const struct site *site;
    const struct strategy *strategy;
};
int costs_block(struct costs *costs, const struct site *site, int block,
                const struct strategy *strategy, const struct tie *tie, int64_t samples,
                struct part_cost *out, struct error *err);
/* A number that identifies everything the other end's cost depends on, if the model's first and
 * last block share weights and this is one of them; otherwise 0. */
int costs_tie(struct costs *costs, const struct site *site, int block,
              const struct strategy *strategy);
/* The cost of joining `block` to the next one on the same stage. */
int costs_joint(struct costs *costs, const struct site *site, int block,
                const struct strategy *before, const struct strategy *after, int64_t samples,
                struct part_cost *out, struct error *err);
/* The same between two stages, as paid by the sending stage (side 0) or the receiving one (side
 * 1). */
int costs_crossing(struct costs *costs, const struct site *const sites[2], int block,
                   const struct strategy *before, const struct strategy *after, int64_t samples,
                   int side, struct part_cost *out, struct error *err);
/* What every rank of a plan for `devices` devices has in addition to its blocks: metrics and
 * libraries. */
int costs_base(struct costs *costs, const struct site *site, int devices, struct part_cost *out,
               struct error *err);
/* The strategy that a plan gives to a block. */
struct strategy strategy_of(const struct plan *plan, int block);

#endif
