/* checkpoints.h - which saved steps of a job can be trusted.
 *
 * A checkpoint is listed by being stored, like everything else at the end of the turn, before the
 * rank that wrote it is answered. So whatever is listed is complete; and a rank that wakes up in an
 * epoch that is over publishes nothing, because its call is refused as too late. */
#ifndef COORDINATOR_TURN_CHECKPOINTS_H
#define COORDINATOR_TURN_CHECKPOINTS_H

#include "common/checkpoint/ancestor.h"
#include "coordinator/turn/state.h"

/* Whether the job saves checkpoints. */
bool checkpoints_saves(const struct state *state, const struct job *job);
/* The directory of the job's checkpoints, NULL if it has none; that of its newest listed and
 * undamaged checkpoint, NULL if there is none (the caller frees both); and all listed checkpoints,
 * each released by its free_unpacked(). */
char *checkpoints_root(const struct state *state, const struct job *job);
char *checkpoints_newest(const struct state *state, const struct job *job);
Gimbal__Checkpoint **checkpoints_to_wire(const struct state *state, const struct job *job,
                                         size_t *count);
/* The listed checkpoint of this step, or (0) the newest undamaged one, as what another job goes on
 * from: with its steps, samples and job file. The caller finishes *out. -ENOENT, with the steps
 * that there are. */
int checkpoints_origin(const struct state *state, const struct job *job, uint64_t step,
                       struct ancestor *out, struct error *err);
/* A rank cannot load the checkpoint of this step, for the reason in `words`. */
void checkpoints_damage(struct state *state, const struct job *job, uint64_t step,
                        const char *words);

#endif
