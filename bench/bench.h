/* bench.h - what the suites that train share: a clock, a median, samples to train on, and an
 * optimizer. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "common/base/error.h"
#include "worker/interpreter/interpreter.h"

/* Seconds of a clock that only goes forward. */
double bench_now_s(void);
/* Sorts them, the smallest first; of an even count the upper of the middle two. */
double bench_median(double *values, size_t count);
/* The sentence goes to stderr, and the process ends, unless rc is 0. */
void bench_need(int rc, const struct error *err);

/* Samples of `seq` tokens and as many targets, 0 to vocab - 1, drawn by chance: the same for a
 * sample's number in every run. */
struct bench_tokens {
    int64_t seq, vocab;
};
/* Lends `tokens` as long as it is used. */
struct feed bench_feed_of(const struct bench_tokens *tokens);

#define BENCH_VOCAB 256
#define BENCH_SEQ 256
extern const struct feed bench_feed;           /* of these */
extern const struct optimizer bench_optimizer; /* AdamW, with everything that it can do */

#endif
