/* scalars.h - what rank 0 measures, written for other programs: event files of TensorBoard, and
 * JSON lines (`log` in the job file).
 *
 * A training may go back: an epoch begins behind a step, and whatever was written of later ones is
 * no longer true. TensorBoard is told so, and drops it: every epoch has an event file of its own,
 * which begins with the step from which on earlier files do not count. From a file of lines, those
 * of later steps are cut off, so that no step is there twice.
 *
 * What cannot be written does not stop the training: it is said once, in the log, and left out.
 * Belongs to one thread at a time. */
#ifndef WORKER_SCALARS_SCALARS_H
#define WORKER_SCALARS_SCALARS_H

#include "common/config/job.h"
#include "worker/interpreter/optimizer.h"

#include <stdint.h>

struct scalars_config {
    const struct job_log *log;  /* lent */
    const char *name, *job;     /* of the job, and its id or "local"; lent */
    uint64_t epoch;             /* more than that of any earlier one */
    const char *plan;           /* in words */
    double predicted_s;         /* of a step; 0: unknown */
    uint64_t tokens;            /* of a step */
    struct optimizer optimizer; /* whose rate is written */
};

struct scalars;

/* NULL if the job logs nothing. Copies what is not lent. Nothing is written yet. */
struct scalars *scalars_create(const struct scalars_config *config);
/* Write what is left. Accepts NULL. */
void scalars_destroy(struct scalars *scalars);

/* The functions below accept NULL, too. */

/* The epoch begins behind this step, with its state from `source` ("memory", "a checkpoint", ...).
 */
void scalars_begin(struct scalars *scalars, uint64_t step, const char *source);
/* After step number `step`, from 1. */
void scalars_step(struct scalars *scalars, uint64_t step, double loss, double gradient_norm,
                  double seconds);
void scalars_evaluation(struct scalars *scalars, uint64_t step, double loss);
void scalars_sample(struct scalars *scalars, uint64_t step, const void *text, size_t size);

#endif
