/* steps.h - the steps of one job: its current speed, its loss, and a curve of the whole run.
 *
 * Every rank reports every step. A step takes as long as its slowest rank; tokens and loss are
 * those of the whole step, whoever reports them. If a job continues in a new epoch from an earlier
 * step, records of the steps to be repeated are dropped. */
#ifndef COORDINATOR_TELEMETRY_STEPS_H
#define COORDINATOR_TELEMETRY_STEPS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define STEPS_WINDOW 64 /* newest steps, kept individually */
#define STEPS_CURVE 512 /* points of the curve over the whole run */

struct step_record {
    uint32_t epoch;
    uint64_t step;   /* from 1 */
    double loss;     /* NaN if the rank does not know it */
    uint64_t tokens; /* of the whole step */
    double time_s;   /* on the rank that reports */
    uint64_t end_ms; /* by the coordinator's clock */
};

struct step_point {
    uint64_t step;
    double loss, time_s;
    uint64_t tokens, end_ms;
};

struct steps {
    uint32_t epoch;
    struct step_point window[STEPS_WINDOW]; /* oldest first */
    size_t count;
    struct step_point curve[STEPS_CURVE];
    size_t curve_count;
    uint64_t stride; /* every stride-th step is in the curve; a power of two */
};

void steps_init(struct steps *steps);

/* -EINVAL: the record is invalid. -ESTALE: it is of an earlier epoch, or of a step that has left
 * the window or was skipped. */
int steps_add(struct steps *steps, const struct step_record *record, struct error *err);

/* The newest step, lent until the next record; NULL if there is none. Its time may still grow as
 * further ranks report. */
const struct step_point *steps_last(const struct steps *steps);

/* Tokens per second over the newest 16 steps: the sum of their tokens over the sum of their times;
 * 0 if there are none. */
double steps_tokens_per_s(const struct steps *steps);

/* Median time of the steps in the window in seconds; 0 if there are none. */
double steps_time_median_s(const struct steps *steps);

#endif
