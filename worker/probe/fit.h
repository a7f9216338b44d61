/* fit.h - fits a linear cost model to measurements: the time of an instruction as a function of its
 * work. */
#ifndef WORKER_PROBE_FIT_H
#define WORKER_PROBE_FIT_H

#include <stddef.h>

/* The work of an instruction: 1 for the fixed time, its floating-point operations, its bytes. */
enum fit_term { FIT_FIXED, FIT_FLOPS, FIT_BYTES, FIT_TERMS };
struct fit_sample {
    double work[FIT_TERMS];
    double seconds; /* more than 0 */
};

/* Fill in the seconds per unit of each kind of work, none negative, that minimise the sum of the
 * squares of the relative errors. There are several solutions where one kind of work always grows
 * with another; preferred are fixed time and operations, then fixed time and bytes, then the rest.
 * No samples give zeros. */
void fit_work(const struct fit_sample *samples, size_t count, double out[FIT_TERMS]);

#endif
