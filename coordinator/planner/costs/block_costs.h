/* block_costs.h - what a block, a joint or a crossing takes: the sums of its instructions' prices
 * and its bytes in the arena, from the same lowering as the programs that run.
 *
 * A part is lowered once for each strategy, micro-batch and kind of site, on the ranks that stand
 * for its stage (rank_costs.h); of these the largest of every number counts. Times in seconds. */
#ifndef COORDINATOR_PLANNER_COSTS_BLOCK_COSTS_H
#define COORDINATOR_PLANNER_COSTS_BLOCK_COSTS_H

#include "coordinator/planner/costs/known_costs.h"
#include "coordinator/planner/costs/short_graph.h"
#include "coordinator/planner/costs/site.h"
#include "coordinator/planner/costs/ties.h"

/* What a plan chooses for a block. */
struct strategy {
    const struct role *roles[AXES_MAX]; /* per axis of the mesh */
    int zero;
    enum recompute recompute;
};

struct costs {
    const struct planner_request *request;
    struct short_graph model;
    struct sites sites;
    struct ways *ways;
    struct ties ties;
    uint8_t *like;          /* per block of the short model and recomputation: recompute_like() */
    struct plan *one, *two; /* scratch: the short model on one stage, on two */
    struct known_costs known;
    size_t lowered; /* programs so far */
    bool narrow;    /* strategies.c: of the roles only those that are tried on many devices */
    bool one_rank;  /* costs of the first rank stand for all of a site of equal devices */
    int only_rank;  /* costs of this rank of a stage alone; -1: of all */
};

/* -ENOTSUP: a model whose parts depend on each other beyond what is added up here. */
int costs_init(struct costs *costs, const struct planner_request *request, struct error *err);
void costs_finish(struct costs *costs);

/* Does lowering accept the strategy for this block there, and if not, why? samples: of a
 * micro-batch. */
bool costs_accepts(struct costs *costs, const struct site *site, int block,
                   const struct strategy *strategy, int64_t samples, struct error *err);
/* A block of the model. tied: of the first block the last one's strategy and site, and the other
 * way round, where they share weights; else NULL. On one site the last block's cost is what it
 * adds to that of the first. */
struct tie {
    const struct site *site;
    const struct strategy *strategy;
};
int costs_block(struct costs *costs, const struct site *site, int block,
                const struct strategy *strategy, const struct tie *tie, int64_t samples,
                struct part_cost *out, struct error *err);
/* A number for all that the other end's cost depends on, where the model's first block and its last
 * share weights; else 0. */
int costs_tie(struct costs *costs, const struct site *site, int block,
              const struct strategy *strategy);
/* Between `block` and the next one. */
int costs_joint(struct costs *costs, const struct site *site, int block,
                const struct strategy *before, const struct strategy *after, int64_t samples,
                struct part_cost *out, struct error *err);
/* The same between two stages, on the side of the first (0) or the second (1). */
int costs_crossing(struct costs *costs, const struct site *const sites[2], int block,
                   const struct strategy *before, const struct strategy *after, int64_t samples,
                   int side, struct part_cost *out, struct error *err);
/* What every rank of a plan for `devices` devices has besides: the metrics. */
int costs_base(struct costs *costs, const struct site *site, int devices, struct part_cost *out,
               struct error *err);
struct strategy strategy_of(const struct plan *plan, int block);

#endif
