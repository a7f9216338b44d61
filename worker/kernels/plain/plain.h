/* plain.h - what other devices take from plain C: copies of boxes, one contiguous range at a time.
 */
#ifndef WORKER_KERNELS_PLAIN_PLAIN_H
#define WORKER_KERNELS_PLAIN_PLAIN_H

#include "worker/kernels/call.h"

/* Copy `count` elements from element `from` of a source to element `to` of a destination. */
typedef void copy_run_fn(const struct view *destination, int64_t to, const struct view *source,
                         int64_t from, int64_t count);
copy_run_fn plain_copy_run;
/* As copy() of struct device, with one call of copy_run for each range that is contiguous in both
 * pieces. */
void plain_copy_runs(const struct view *destination, const struct view *source,
                     const struct box *part, copy_run_fn *copy_run);

#endif
