/* bench.h - what the suites that train share: a clock, a median, samples to train on, and an
 * optimizer. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "common/base/error.h"
#include "worker/interpreter/interpreter.h"

/* Seconds of a monotonic clock. */
double bench_now_s(void);
/* The median; of an even count the upper of the middle two. Sorts the values. */
double bench_median(double *values, size_t count);
/* If rc is negative, print the error to stderr and end the process. */
void bench_need(int rc, const struct error *err);

/* Random samples of `seq` tokens and as many targets, 0 to vocab - 1. A sample's number determines
 * them, so they are the same in every run. */
struct bench_tokens {
    int64_t seq, vocab;
};
/* Borrows `tokens`, which must outlive the feed. */
struct feed bench_feed_of(const struct bench_tokens *tokens);

#define BENCH_VOCAB 256
#define BENCH_SEQ 256
extern const struct feed bench_feed;           /* of this vocabulary and length */
extern const struct optimizer bench_optimizer; /* AdamW with weight decay and clipping */

#endif
