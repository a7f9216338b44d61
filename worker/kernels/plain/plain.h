/* plain.h - the members of device_plain, one file each or one for a few that are similar.
 *
 * They define what an operation means: element by element, summed in double. Fast devices are
 * tested against them, and borrow those that they cannot improve. */
#ifndef WORKER_KERNELS_PLAIN_PLAIN_H
#define WORKER_KERNELS_PLAIN_PLAIN_H

#include "worker/kernels/call.h"

extern const struct kernel plain_add, plain_attention, plain_embed, plain_gelu, plain_linear,
    plain_loss, plain_norm, plain_position, plain_rmsnorm, plain_rotary, plain_swiglu;

/* All kernels of plain C; ends with NULL. */
extern const struct kernel *const plain_kernels[];

/* Entries of struct device; see kernels.h. */
void plain_sum(const struct view *destination, const struct view *source);
void plain_copy(const struct view *destination, const struct view *source, const struct box *part);

/* Copy `count` elements from element `from` of a source to element `to` of a destination. */
typedef void copy_run_fn(const struct view *destination, int64_t to, const struct view *source,
                         int64_t from, int64_t count);
copy_run_fn plain_copy_run;
/* As plain_copy, with one call of copy_run for each range that is contiguous in both pieces. */
void plain_copy_runs(const struct view *destination, const struct view *source,
                     const struct box *part, copy_run_fn *copy_run);

#endif
