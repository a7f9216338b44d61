/* measure.h - what the parts of the bench share: the shortest time of some work, output lines, and
 * random operands. */
#ifndef BENCH_KERNELS_MEASURE_H
#define BENCH_KERNELS_MEASURE_H

#include "common/base/element.h"

#include <stddef.h>
#include <stdint.h>

typedef void work_fn(void *context);

/* The shortest of many runs, in seconds. */
double measure_shortest(work_fn *work, void *context);
/* The same for each of several contexts, by turns, so that disturbances hit all of them alike. */
void measure_in_turns(work_fn *work, void *const contexts[], size_t count, double seconds[]);
/* "bench kernels/NAME VALUE UNIT" */
void measure_print(const char *name, double value, const char *unit);
/* Random numbers from -0.5 to 0.5, the same for a stream in every run; freed with free(). */
void *measure_draw(size_t count, enum element element, uint64_t stream);

#endif
