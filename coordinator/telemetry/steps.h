/* steps.h - the steps of one job: its current speed, its loss, and a curve of the whole run.
 *
 * Every rank may report every step. A step takes as long as its slowest rank; tokens and loss are
 * those of the whole step, whoever reports them. If a job continues in a new epoch from an earlier
 * step, records of the steps to be repeated are dropped.
 *
 * A store has the same points as soon as it is told what has changed since it was last told. */
#ifndef COORDINATOR_TELEMETRY_STEPS_H
#define COORDINATOR_TELEMETRY_STEPS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define STEPS_WINDOW 64  /* newest steps, each of which is kept */
#define STEPS_CURVE 4096 /* points of the run before them; all steps, while there are no more */

struct step_record {
    uint32_t epoch;
    uint64_t step;        /* from 1 */
    double loss;          /* NaN if the rank does not know it */
    double gradient_norm; /* likewise */
    uint64_t tokens;      /* of the whole step */
    double time_s;        /* on the rank that reports */
    uint64_t end_ms;      /* by the coordinator's clock */
};

struct step_point {
    uint64_t step;
    uint32_t epoch;
    double loss, gradient_norm, time_s;
    uint64_t tokens, end_ms;
};

/* To be read only. */
struct steps {
    uint32_t epoch;
    struct step_point *points; /* oldest first */
    size_t count, capacity;
    uint64_t stride; /* every stride-th step before the window is a point; a power of two */
    /* What a store has not been told: points from this step on are new or have changed, and from
     * that one on some are gone; UINT64_MAX: none. */
    uint64_t changed_from, gone_from;
};

void steps_init(struct steps *steps);
void steps_finish(struct steps *steps);

/* -EINVAL: the record is invalid. -ESTALE: it is of a step that a later epoch has trained again, or
 * that has left the window or was skipped. */
int steps_add(struct steps *steps, const struct step_record *record, struct error *err);

/* The newest step, lent until the next record; NULL if there is none. Its time may still grow as
 * further ranks report. */
const struct step_point *steps_last(const struct steps *steps);
/* The newest STEPS_WINDOW points at most, lent likewise. */
const struct step_point *steps_window(const struct steps *steps, size_t *count);

/* Tokens per second over the newest 16 steps: the sum of their tokens over the sum of their times;
 * 0 if there are none. */
double steps_tokens_per_s(const struct steps *steps);

/* Median time of the steps in the window in seconds; 0 if there are none. */
double steps_time_median_s(const struct steps *steps);

/* A store has been told. */
void steps_saved(struct steps *steps);
/* Have the points that a store has, in order of steps, instead of others. */
void steps_restore(struct steps *steps, const struct step_point *points, size_t count);
/* Keep only the window; all of it is saved. */
void steps_release(struct steps *steps);

#endif
