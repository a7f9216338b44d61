/* boundary.h - what is due between two steps, after the same step on all ranks: reports,
 * evaluation, checkpoint, pause, end. */
#ifndef WORKER_TRAINER_BOUNDARY_H
#define WORKER_TRAINER_BOUNDARY_H

#include "worker/move/copies.h"
#include "worker/trainer/times.h"
#include "worker/trainer/trainer.h"

/* All pointers are lent. */
struct boundary {
    const struct trainer_config *config;
    struct interpreter *in;
    struct times *times;
    struct saver *saver;   /* NULL: the job writes no checkpoints */
    struct copies *copies; /* NULL: none are made */
    bool due;              /* a checkpoint is due after the next finite step */
};

/* Whether the instructions of this step, counted from 1, are reported one by one. */
bool boundary_traces(uint64_t step);
/* Do what is due after step number `done`. May be repeated for a step that an earlier epoch has
 * finished, since that epoch may have broken off before all of this was done. A checkpoint due
 * after a skipped step waits for the next finite one, unless the step is the last of the job: the
 * state that made a step diverge is not one to go back to. */
int boundary_step(struct boundary *boundary, uint64_t done, bool skipped, struct error *err);
/* Go through pause `number`: save and settle everything, then report the pause and wait until it is
 * over. The checkpoint is complete before anybody hears of the pause, so a rank that is stopped
 * during it has nothing left to do. -ECANCELED, with words, if it was stopped. */
int boundary_pause(const struct boundary *boundary, uint64_t done, uint64_t number,
                   struct error *err);
/* The last `skipped` steps were not finite. Waits until earlier checkpoints are written, then
 * returns -EDOM with words for the user. */
int boundary_diverged(const struct boundary *boundary, uint64_t done, uint64_t skipped,
                      struct error *err);
/* Stop after this step with a checkpoint. Returns -ECANCELED with words, or the error that
 * prevented it. */
int boundary_stop(const struct boundary *boundary, uint64_t done, struct error *err);

#endif
