/* layer_dp.h - a stage planned for itself, as Galvatron does (arXiv 2211.13878, section 3.3):
 * dynamic programming over its blocks, memory and the last block's strategy.
 *
 * F(l, e, s) = min over s' of F(l - 1, e - O(l, s), s') + R(s', s) + c(l, s), O being what stays
 * after the forward pass; the result is checked with what the backward pass has besides. Seconds
 * are those of the stage's whole step. e goes by a grid over the stage's memory, of which every
 * cell keeps its exact bytes.
 *
 * Where the first and the last block share a weight either is priced as if the other were divided
 * like it. What crosses between stages is left out: it counts in the whole plan. */
#ifndef COORDINATOR_PLANNER_LAYER_DP_H
#define COORDINATOR_PLANNER_LAYER_DP_H

#include "coordinator/planner/exact/instance.h"

/* Stages that begin with the same block are planned together. */
struct layer_dp {
    struct instance *instance;
    struct layer_rows *rows;
};

void layer_dp_init(struct layer_dp *dp, struct instance *instance);
void layer_dp_finish(struct layer_dp *dp);
/* Plan the blocks [first, end) on the stage. false: nothing fits. strategies (optional): filled for
 * the blocks, by their index. */
bool layer_dp_plan(struct layer_dp *dp, int stage, int first, int end, double *seconds,
                   uint64_t *bytes, struct strategy *strategies);

/* Of one block, as above: what it takes of the stage's step, and the bytes that stay. */
double layer_seconds(const struct instance *instance, const struct part_cost *cost);
uint64_t layer_bytes(const struct instance *instance, int stage, const struct part_cost *cost);

#endif
