/* fit.h - fits linear cost models to measurements: the time of an instruction as a function of its
 * work, and that of an exchange as a function of its bytes. */
#ifndef WORKER_PROBE_FIT_H
#define WORKER_PROBE_FIT_H

#include "common/hardware/hardware.h"

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

/* The link on which all-reduces between `ranks` (at least 2) took little_s for almost nothing and
 * much_s for this many bytes, both more than 0, by the ring formula of profile_seconds(). If the
 * larger one took no longer, then what little_s took was not the link's latency, and all of much_s
 * is counted as the bytes': the link is at least as fast as that. */
struct hardware_link fit_link(int ranks, double bytes, double little_s, double much_s);

#endif
