/* measure.h - what the parts of the bench share: the shortest time of some work, lines, and numbers
 * to work on. */
#ifndef BENCH_KERNELS_MEASURE_H
#define BENCH_KERNELS_MEASURE_H

#include "common/base/element.h"

#include <stddef.h>
#include <stdint.h>

typedef void work_fn(void *context);

/* Seconds, of many times. */
double measure_shortest(work_fn *work, void *context);
/* Of the work on each of several contexts, in turns. */
void measure_in_turns(work_fn *work, void *const contexts[], size_t count, double seconds[]);
/* "bench kernels/NAME VALUE UNIT" */
void measure_print(const char *name, double value, const char *unit);
/* Numbers from -0.5 to 0.5, the same in every run; for free(). */
void *measure_draw(size_t count, enum element element, uint64_t stream);

#endif
