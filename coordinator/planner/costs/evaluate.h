/* evaluate.h - evaluates a whole plan from its parts: time and memory of its stages, without
 * lowering the plan itself. */
#ifndef COORDINATOR_PLANNER_COSTS_EVALUATE_H
#define COORDINATOR_PLANNER_COSTS_EVALUATE_H

#include "coordinator/planner/costs/costs.h"

/* Seconds per micro-batch, and once per step. */
struct stage_cost {
    double forward_s, backward_s, once_s;
    double least_s; /* forward and backward on the fastest rank, compute queue only */
    /* what it spends at least per micro-batch and once per step; see part_cost.h */
    double least_both_s, least_once_s;
    uint64_t bytes;   /* on the rank that needs most */
    uint64_t lacking; /* the most that any rank's device lacks; 0: the stage fits */
    double filling;   /* share of its memory that the fullest device uses */
};

/* Find the site of each stage of a plan whose rank r runs on device r; lent by costs. `sites` has
 * room for all stages. */
void evaluate_sites(struct costs *costs, const struct plan *plan, const struct site **sites);
/* Evaluate one stage; sites as from evaluate_sites(). Errors as of costs_block(). */
int evaluate_stage(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                   int stage, struct stage_cost *out, struct error *err);
/* The share of its devices' memory that the fullest stage of a plan uses; 1 is all of it. */
int evaluate_filling(struct costs *costs, const struct plan *plan, double *share,
                     struct error *err);
/* Closed form of a pipelined step (Galvatron-BMW, arXiv 2307.02031, with the synchronisation made
 * explicit): sum T + (m - 1) max T + max over i of (u_i - sum of B_j over the stages before i),
 * with T = F + B. */
double evaluate_formula(const struct stage_cost *stages, int count, int micro_batches);
/* Lower bound on the simulated step: on any stage all micro-batches pass one after the other, the
 * first after the forwards of the stages before, the last before their backwards. Messages beside
 * computing may fall into that wait, as may what is done once per step; but all of a stage's work
 * takes a step, too. */
double evaluate_bound(const struct stage_cost *stages, int count, int micro_batches);
/* By that bound, a step takes at least this many times what one micro-batch takes on all stages
 * together, however it is divided among them: of the step T, stage i has at most 1/m of what the
 * stages before it have left, so together they have at most 1 - (1 - 1/m)^p of it. */
double evaluate_passes(int stages, int micro_batches);
/* Formula and bound for a plan. *fits: judged by the memory of every rank that its site tells
 * apart. */
int evaluate_plan(struct costs *costs, const struct plan *plan, double *step_s, double *bound_s,
                  bool *fits, struct error *err);

#endif
