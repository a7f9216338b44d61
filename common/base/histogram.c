/* histogram.c - values below 16 have a bucket each; above, every power of two has eight buckets. */
#include "common/base/histogram.h"

#include <assert.h>
#include <math.h>

static unsigned bucket_of(uint64_t value)
{
    if (value < 16)
        return (unsigned)value;
    unsigned shift = 60 - (unsigned)__builtin_clzll(value); /* leaves four binary digits */
    return 8 * shift + (unsigned)(value >> shift);
}

/* The greatest value that falls into a bucket. */
static uint64_t top_of(unsigned bucket)
{
    if (bucket < 16)
        return bucket;
    unsigned shift = bucket / 8 - 1;
    return ((uint64_t)(bucket % 8 + 8) << shift) + (((uint64_t)1 << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->sum += value;
    histogram->buckets[bucket_of(value)]++;
    if (value > histogram->greatest)
        histogram->greatest = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    assert(share >= 0 && share <= 1);
    uint64_t least = (uint64_t)ceil(share * (double)histogram->count), seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && seen >= least)
            return top_of(i) < histogram->greatest ? top_of(i) : histogram->greatest;
    }
    return histogram->greatest;
}
