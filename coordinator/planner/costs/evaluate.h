/* evaluate.h - a whole plan by its parts: time and memory of its stages, without lowering it. */
#ifndef COORDINATOR_PLANNER_COSTS_EVALUATE_H
#define COORDINATOR_PLANNER_COSTS_EVALUATE_H

#include "coordinator/planner/costs/block_costs.h"

struct stage_cost {
    double forward_s, backward_s, once_s;
    double least_s;   /* of forward and backward, on the rank that takes least */
    uint64_t bytes;   /* on the rank that has most */
    uint64_t lacking; /* that some rank's device has too few of; 0: the stage fits */
    double filling;   /* share of its memory that the fullest device has taken */
};

/* The site of each stage of a plan whose rank r runs on device r; lent. */
void evaluate_sites(struct costs *costs, const struct plan *plan, const struct site **sites);
int evaluate_stage(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                   int stage, struct stage_cost *out, struct error *err);
/* How much of its devices' memory the fullest stage of a plan takes: 1 is all of it. */
int evaluate_filling(struct costs *costs, const struct plan *plan, double *share,
                     struct error *err);
/* A step of the pipeline in closed form (Galvatron-BMW, arXiv 2307.02031, with the
 * synchronisation made explicit): sum T + (m - 1) max T + max (u_i - sum of B_j of the stages
 * before it), T = F + B. */
double evaluate_formula(const struct stage_cost *stages, int count, int micro_batches);
/* No simulated step is shorter: for any stage, every micro-batch passes it one after the other,
 * the first after the forwards of those before, the last before their backwards. */
double evaluate_bound(const struct stage_cost *stages, int count, int micro_batches);
/* By that bound a step takes so many times what one micro-batch takes on all stages together,
 * however it is divided among them: of the step T, what stage i has is 1/m of what those before it
 * have left at most, so together they have 1 - (1 - 1/m)^p of it. */
double evaluate_passes(int stages, int micro_batches);
/* Formula and bound for a plan: *fits by the memory of every rank that its site tells apart. */
int evaluate_plan(struct costs *costs, const struct plan *plan, double *step_s, double *bound_s,
                  bool *fits, struct error *err);

#endif
