/* measure.h - what the parts of the bench share: the shortest time of some work, lines, and numbers
 * to work on. */
#ifndef BENCH_KERNELS_MEASURE_H
#define BENCH_KERNELS_MEASURE_H

#include <stddef.h>
#include <stdint.h>

typedef void work_fn(void *context);

/* Seconds, of many times. */
double measure_shortest(work_fn *work, void *context);
/* "bench kernels/NAME VALUE UNIT" */
void measure_print(const char *name, double value, const char *unit);
/* Numbers from -0.5 to 0.5, the same in every run; for free(). */
float *measure_draw(size_t count, uint64_t stream);

#endif
