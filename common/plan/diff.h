/* diff.h - in what two plans of one model differ. */
#ifndef COMMON_PLAN_DIFF_H
#define COMMON_PLAN_DIFF_H

#include "common/plan/plan.h"

/* One difference; texts are lent for the call. what: "micro-batches", "layers 0 to 11". */
typedef void plan_diff_cb(const char *what, const char *first, const char *second, void *context);

/* Call cb for every difference: the pipeline, its stages, then the blocks, runs of blocks that
 * differ alike as one. Predictions are not looked at. Returns how many there were; -EINVAL: the
 * plans are of models of different length. */
int plan_diff(const struct plan *first, const struct plan *second, plan_diff_cb *cb, void *context,
              struct error *err);
/* What a plan does with a block: "dp2·tp2 zero1 recompute full"; "one device" without axes. */
char *plan_print_block(char *out, size_t size, const struct plan *plan, int block);

#endif
