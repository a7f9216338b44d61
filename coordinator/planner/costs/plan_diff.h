/* plan_diff.h - the differences between two plans for the same model, as text. */
#ifndef COORDINATOR_PLANNER_COSTS_PLAN_DIFF_H
#define COORDINATOR_PLANNER_COSTS_PLAN_DIFF_H

#include "common/plan/plan.h"

/* Receives one difference: `what` differs ("micro-batches", "layers 0 to 11"), with its value in
 * either plan. The strings are valid during the call only. */
typedef void plan_diff_cb(const char *what, const char *first, const char *second, void *context);

/* Call cb for every difference: first the pipeline as a whole, then its stages, then the blocks,
 * where a run of blocks with the same difference is reported once. Predictions are ignored. Returns
 * the number of differences; -EINVAL when the plans have different numbers of blocks. */
int plan_diff(const struct plan *first, const struct plan *second, plan_diff_cb *cb, void *context,
              struct error *err);
/* Describe how a plan treats a block: "dp2·tp2 zero1 recompute full", or "one device" if no role
 * has more than one. Truncated to `size`; returns `out`. */
char *plan_print_block(char *out, size_t size, const struct plan *plan, int block);

#endif
