/* boundary.h - what is due behind a step, behind the same one on all ranks: its records, an
 * evaluation, a checkpoint; a pause; the end. */
#ifndef WORKER_TRAINER_BOUNDARY_H
#define WORKER_TRAINER_BOUNDARY_H

#include "worker/trainer/times.h"
#include "worker/trainer/trainer.h"

/* All lent. */
struct boundary {
    const struct trainer_config *config;
    struct interpreter *in;
    struct times *times;
    struct saver *saver; /* NULL: the job has no checkpoints */
    bool due;            /* a checkpoint is, behind the next step that is finite */
};

/* Whether the instructions of this step, counted from 1, are told one by one. */
bool boundary_traces(uint64_t step);
/* `done` steps are. May be said again of a step that an earlier epoch has finished: it may have
 * broken off before all this was done. Behind one that was skipped nothing is saved, unless it is
 * the last: what it was computed with may be what a job goes back from. */
int boundary_step(struct boundary *boundary, uint64_t done, bool skipped, struct error *err);
/* Pause `number`: the step is saved before anybody hears that the ranks have paused, so that one
 * that is stopped meanwhile has nothing left to do. -ECANCELED, in words, when it was. */
int boundary_pause(const struct boundary *boundary, uint64_t done, uint64_t number,
                   struct error *err);
/* The last `skipped` steps were not finite: -EDOM, in words, when the checkpoints before them are
 * written. */
int boundary_diverged(const struct boundary *boundary, uint64_t done, uint64_t skipped,
                      struct error *err);
/* The last step of all, with a checkpoint: -ECANCELED, in words. */
int boundary_stop(const struct boundary *boundary, uint64_t done, struct error *err);

#endif
