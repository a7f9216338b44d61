/* fit.h - what an operation takes, as a function of its work, from what a few sizes of it took. */
#ifndef WORKER_PROBE_FIT_H
#define WORKER_PROBE_FIT_H

#include <stddef.h>

/* An instruction: a fixed time counts 1, then its floating-point operations, then its bytes. */
enum fit_term { FIT_FIXED, FIT_FLOPS, FIT_BYTES, FIT_TERMS };
struct fit_sample {
    double work[FIT_TERMS];
    double seconds; /* more than 0 */
};

/* Seconds of each unit of work, none negative, so that the squares of the relative errors are
 * least; of several such answers, which there are where one kind of work always grows with
 * another, the first of these: fixed and operations, fixed and bytes, then all others. */
void fit_work(const struct fit_sample *samples, size_t count, double out[FIT_TERMS]);

#endif
