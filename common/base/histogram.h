/* histogram.h - the distribution of values in fixed memory: counts in buckets whose width grows
 * with the value.
 *
 * A bucket is at most an eighth of its values wide, so a quantile is at most 12.5 % too high and
 * never too low. Values are integers of any unit. */
#ifndef COMMON_BASE_HISTOGRAM_H
#define COMMON_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 496

/* Start with all zeroes. */
struct histogram {
    uint64_t count, greatest, sum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* The quantile: at least `share` (0 to 1) of all values are at most this large. 0 without values.
 */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
