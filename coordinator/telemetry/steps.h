/* steps.h - the steps of one job: how fast it is now, its loss, and its curve.
 *
 * Every rank reports every step. A step takes as long as its slowest rank; its tokens and loss
 * are the whole step's, whoever tells them. When a job goes on in a new epoch from an earlier
 * step, what was recorded of the steps that are repeated is dropped. */
#ifndef COORDINATOR_TELEMETRY_STEPS_H
#define COORDINATOR_TELEMETRY_STEPS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define STEPS_WINDOW 64 /* the newest, kept one by one */
#define STEPS_CURVE 512 /* points of the curve, over the whole run */

struct step_record {
    uint32_t epoch;
    uint64_t step;   /* from 1 */
    double loss;     /* NaN from a rank that does not know it */
    uint64_t tokens; /* of the whole step */
    double time_s;   /* on the rank that reports */
    uint64_t end_ms; /* coordinator's clock */
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

/* -EINVAL: not a record of a step. -ESTALE: of an earlier epoch, or of a step that has left the
 * window or was passed over. */
int steps_add(struct steps *steps, const struct step_record *record, struct error *err);

/* The newest step, lent until the next record; NULL before the first. Its time may still grow
 * while ranks report. */
const struct step_point *steps_last(const struct steps *steps);

/* Tokens per second over the newest 16 steps: all their tokens over all their time; 0 before
 * there are any. */
double steps_tokens_per_s(const struct steps *steps);

/* The median time of the steps in the window, seconds; 0 before there are any. */
double steps_time_median_s(const struct steps *steps);

#endif
