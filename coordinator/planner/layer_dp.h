/* layer_dp.h - plans one stage in isolation, as Galvatron does (arXiv 2211.13878, section 3.3), by
 * dynamic programming over its blocks, the memory used, and the last block's strategy.
 *
 * F(l, e, s) = min over s' of F(l - 1, e - O(l, s), s') + R(s', s) + c(l, s), where O is the memory
 * that remains in use after the forward pass. The result is then checked including what the
 * backward pass needs besides. Seconds are of the stage's whole step. e is discretized by a grid
 * over the stage's memory, but each cell keeps its exact bytes.
 *
 * If the first and the last block share a weight, each is priced as if the other were divided in
 * the same way. Traffic between stages is left out; it counts when the whole plan is judged. */
#ifndef COORDINATOR_PLANNER_LAYER_DP_H
#define COORDINATOR_PLANNER_LAYER_DP_H

#include "coordinator/planner/exact/instance.h"

/* Results are shared by calls for stages that begin with the same block. */
struct layer_dp {
    struct instance *instance;
    struct layer_rows *rows;
};

void layer_dp_init(struct layer_dp *dp, struct instance *instance);
void layer_dp_finish(struct layer_dp *dp);
/* Plan blocks [first, end) on the stage. On success sets the seconds and bytes of the stage and, if
 * not NULL, fills strategies by block index. Returns false if nothing fits. */
bool layer_dp_plan(struct layer_dp *dp, int stage, int first, int end, double *seconds,
                   uint64_t *bytes, struct strategy *strategies);

/* Seconds that a part adds to the stage's step, and bytes that stay in use after its forward. */
double layer_seconds(const struct instance *instance, const struct part_cost *cost);
uint64_t layer_bytes(const struct instance *instance, int stage, const struct part_cost *cost);

#endif
