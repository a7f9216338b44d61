/* histogram.h - how values are spread, in fixed memory: counts in buckets that grow with the value.
 *
 * A bucket is at most an eighth of its values wide, so that a quantile is told at most 12.5 % too
 * high and never too low. Values are whole numbers of any unit. */
#ifndef COMMON_BASE_HISTOGRAM_H
#define COMMON_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 496

/* Zeroed to begin with. */
struct histogram {
    uint64_t count, greatest, sum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* No more than the share of all values is greater than this; 0 <= share <= 1, 0 for none. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
