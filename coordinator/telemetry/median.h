/* median.h - the median of some numbers. */
#ifndef COORDINATOR_TELEMETRY_MEDIAN_H
#define COORDINATOR_TELEMETRY_MEDIAN_H

#include <stddef.h>

/* The mean of the middle two for an even count; 0 for none. Reorders the values. */
double median(double *values, size_t count);

#endif
