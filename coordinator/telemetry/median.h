/* median.h - the middle of some numbers. */
#ifndef COORDINATOR_TELEMETRY_MEDIAN_H
#define COORDINATOR_TELEMETRY_MEDIAN_H

#include <stddef.h>

/* Of an even number the mean of the middle two; 0 of none. Reorders the values. */
double median(double *values, size_t count);

#endif
