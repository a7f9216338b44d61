/* plain.h - the members of device_plain, a file for each or for those that are alike: what the
 * operation means, element by element, summed in double. Fast devices are measured against them,
 * and borrow what they do not do better. */
#ifndef WORKER_KERNELS_PLAIN_PLAIN_H
#define WORKER_KERNELS_PLAIN_PLAIN_H

#include "worker/kernels/call.h"

extern const struct kernel plain_add, plain_attend, plain_core, plain_embed, plain_gelu,
    plain_grouped, plain_linear, plain_loss, plain_norm, plain_position, plain_rmsnorm,
    plain_rotary, plain_swiglu;

/* All of them; ends with NULL. */
extern const struct kernel *const plain_kernels[];

void plain_sum(const struct view *destination, const struct view *source);
void plain_copy(const struct view *destination, const struct view *source, const struct box *part);

/* Copy `count` numbers from number `from` of a source to number `to` of a destination. */
typedef void copy_run_fn(const struct view *destination, int64_t to, const struct view *source,
                         int64_t from, int64_t count);
copy_run_fn plain_copy_run;
/* As plain_copy, by one call for each run of memory that the box is in both. */
void plain_copy_runs(const struct view *destination, const struct view *source,
                     const struct box *part, copy_run_fn *copy_run);

#endif
